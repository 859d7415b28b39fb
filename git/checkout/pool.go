package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// PoolConfig configures a Pool.
type PoolConfig struct {
	Dir    string         // one directory per checkout in it; one Pool at a time
	Store  *store.Store   // where objects come from and go to
	Max    int            // how many checkouts to keep on the disk, default 8; more only while more are in use
	Limits objects.Limits // on the objects that an attempt may bring in
	Log    *slog.Logger   // gets repairs and failures in the background; default none
}

// Pool makes private checkouts, re-uses finished ones, and removes the others.
//
// A checkout is in use from Prepare, Reopen or Recover until Park or Release. Park leaves it as it is, for Reopen and Recover
// to find; when the pool is full and another checkout is needed, that takes the tree of the one that was parked longest ago.
//
//	<dir>/<name>/           a checkout, with a .git of its own: the agent's
//	<dir>/.own/<name>/      what the service keeps of it: the index of what it wrote there, and state.json
//	<dir>/.warm/<n>/        a finished checkout; .own/.warm-<n> belongs to it
//	<dir>/.trash/           being removed
//	<dir>/.lock             held by the process that has the Pool, and by its git children
//
// Its methods are safe for concurrent use. Two calls for one name must not overlap.
type Pool struct {
	dir    string
	store  *store.Store
	limits objects.Limits
	max    int
	log    *slog.Logger
	lock   *os.File

	mu     sync.Mutex
	warm   []string       // names of directories in .warm, the last used last
	parked map[string]int // checkouts that have a name: 0 while in use, otherwise the turn at which they were parked
	serial int
	closed bool
	trash  sync.WaitGroup
}

// NewPool takes the directory over, repairs what a crash left, and starts to remove old trash.
// Errors: ErrBusy when another process has it, and the context bounds the wait; ErrForeign when it holds something
// else, because what is in a Pool's directory gets removed.
func NewPool(ctx context.Context, cfg PoolConfig) (*Pool, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	p := &Pool{dir: dir, store: cfg.Store, limits: cfg.Limits.OrDefault(), max: cfg.Max, log: cfg.Log, parked: map[string]int{}}
	if p.max == 0 {
		p.max = 8
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	if err := foreign(dir); err != nil {
		return nil, err
	}
	for _, d := range []string{".own", ".warm", ".trash"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, err
		}
	}
	if p.lock, err = git.LockFile(ctx, filepath.Join(dir, ".lock")); err != nil {
		return nil, err
	}
	if err := p.repair(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// foreign returns ErrForeign if a directory is not empty and was not made by a Pool.
func foreign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err := disk.IgnoreMissing(err); err != nil {
		return err
	}
	if len(entries) > 0 && !disk.IsDir(filepath.Join(dir, ".own")) {
		return fmt.Errorf("%s holds %s: %w", dir, entries[0].Name(), git.ErrForeign)
	}
	return nil
}

const warmPrefix = ".warm-"

func (p *Pool) path(elem ...string) string {
	return filepath.Join(append([]string{p.dir}, elem...)...)
}

// treeOf returns the path of a checkout's working tree. name is that of its directory in .own.
func (p *Pool) treeOf(name string) string {
	if n, ok := strings.CutPrefix(name, warmPrefix); ok {
		return p.path(".warm", n)
	}
	return p.path(name)
}

// discard throws away the working tree of a checkout and what is in .own about it.
func (p *Pool) discard(name string) error {
	return errors.Join(p.throw(p.path(".own", name)), p.throw(p.treeOf(name)))
}

// throw moves path out of the way at once and removes it in the background.
func (p *Pool) throw(path string) error {
	if !disk.Exists(path) {
		return nil
	}
	p.mu.Lock()
	p.serial++
	to := p.path(".trash", fmt.Sprintf("%d-%s", p.serial, strings.TrimLeft(filepath.Base(path), ".")))
	p.mu.Unlock()
	for i := 0; disk.Exists(to); i++ {
		to += "x"
	}
	if err := unmountAll(path); err != nil {
		return err
	}
	err := os.Rename(path, to)
	if errors.Is(err, syscall.EXDEV) { // the pool is on an overlay file system, as in a container
		return disk.RemoveAll(path)
	}
	if err != nil {
		return err
	}
	p.empty(to)
	return nil
}

func (p *Pool) empty(path string) {
	p.trash.Go(func() {
		if err := disk.RemoveAll(path); err != nil {
			p.log.Warn("cannot remove an old checkout", "path", path, "error", err)
		}
	})
}

// Close waits until the trash is empty and lets go of the directory. Checkouts stay for the next Pool.
func (p *Pool) Close() error {
	p.mu.Lock()
	closed := p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return nil
	}
	p.trash.Wait()
	return p.lock.Close()
}

// Sweep retires the checkouts whose names keep does not want.
func (p *Pool) Sweep(keep func(name string) bool) error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if _, err := git.ParseName(e.Name()); err != nil || keep(e.Name()) {
			continue
		}
		errs = append(errs, p.retire(e.Name()))
	}
	return errors.Join(errs...)
}

// retire keeps a finished checkout for re-use, or throws it away if the pool is full.
func (p *Pool) retire(name string) error {
	p.claim(name)
	defer p.forget(name)
	if err := unmountAll(p.path(name)); err != nil {
		return err
	}
	if !disk.IsDir(p.path(name)) || !disk.Exists(p.path(".own", name, "index")) {
		return p.discard(name)
	}
	p.mu.Lock()
	full := len(p.parked)+len(p.warm) > p.max
	p.serial++
	n := fmt.Sprint(p.serial)
	p.mu.Unlock()
	if full {
		return p.discard(name)
	}
	// The tree first: repair throws away one of the two without the other.
	if err := os.Rename(p.path(name), p.path(".warm", n)); err != nil {
		return err
	}
	if err := os.Rename(p.path(".own", name), p.path(".own", warmPrefix+n)); err != nil {
		return err
	}
	p.mu.Lock()
	delete(p.parked, name)
	p.warm = append(p.warm, n)
	p.mu.Unlock()
	return nil
}
