package git

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// keeperName is the argument 0 by which this executable knows that it was started to unmount what is below the directory
// in argument 1, once whoever started it is gone.
const keeperName = "pfl-forge-mounts"

// init, not main, so that every executable that mounts, tests included, can be its own keeper.
func init() { //nolint:gochecknoinits // as said
	if len(os.Args) == 2 && os.Args[0] == keeperName {
		awaitEnd(os.Args[1])
	}
}

func awaitEnd(dir string) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	var b [1]byte
	for {
		if _, err := syscall.Read(0, b[:]); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	code := 0
	if unmountBelow(dir) != nil {
		code = 1
	}
	syscall.Exit(code) // os.Exit would wait a second in a build with the race detector
}

// keeper is a process that outlives this one, and then unmounts what this one has mounted: so that a directory with a
// killed service's checkouts can be removed like any other. It holds the pool's lock, so a next pool waits for its end.
// What remains when it is killed as well, the next pool finds.
type keeper struct {
	mu   sync.Mutex
	cmd  *exec.Cmd // nil until it is needed
	life io.Closer
}

// start makes sure that the keeper runs.
func (k *keeper) start(dir string, lock *os.File) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd != nil {
		return nil
	}
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it ends when this process does
	cmd.Args = []string{keeperName, dir}
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.ExtraFiles = []*os.File{lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, life.Close())
	}
	k.cmd, k.life = cmd, life
	return nil
}

// stop ends it, and with it every mount.
func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd == nil {
		return
	}
	_ = k.life.Close()
	_ = k.cmd.Wait()
	k.cmd = nil
}

// sameFile says whether a file is, to git, the same at two paths: then an index made for one holds for the other.
func sameFile(a, b string) bool {
	var x, y unix.Stat_t
	if unix.Lstat(a, &x) != nil || unix.Lstat(b, &y) != nil {
		return false
	}
	return x.Ino == y.Ino && x.Ctim == y.Ctim && x.Mtim == y.Mtim && x.Size == y.Size && x.Uid == y.Uid && x.Gid == y.Gid && x.Mode == y.Mode
}
