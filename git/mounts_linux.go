package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountSource is what the mount table shows as the device of our mounts.
const mountSource = "pfl-forge"

// A copy-up of a file is not flushed: what an agent has not committed may be lost by a power cut, as everywhere.
// Directories can be renamed. The rest is switched off where it would look at how the lower tree was made.
const overlayOptions = "volatile,redirect_dir=on,metacopy=off,index=off"

// mountOverlay mounts an empty or used layer over a tree that nothing changes meanwhile. The directory work holds nothing
// that is needed. Paths may hold any character, because the kernel is given descriptors.
func mountOverlay(lower, upper, work, at string) error {
	if err := errors.Join(removeAll(work), os.Mkdir(work, 0o700)); err != nil {
		return err
	}
	var dirs [4]string
	for i, dir := range []string{lower, upper, work, at} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &os.PathError{Op: "open", Path: dir, Err: err}
		}
		defer func() { _ = unix.Close(fd) }()
		dirs[i] = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,%s", dirs[0], dirs[1], dirs[2], overlayOptions)
	if err := unix.Mount(mountSource, dirs[3], "overlay", 0, options); err != nil {
		return &os.PathError{Op: "mount an overlay on", Path: at, Err: err}
	}
	return nil
}

// aMount is a line of the mount table.
type aMount struct {
	at   string // where it can be seen
	ours bool
}

// mountsBelow lists what is mounted at a directory or below it, in the order of mounting.
func mountsBelow(dir string) ([]aMount, error) {
	dir, err := realDir(dir)
	if err != nil {
		return nil, err
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []aMount
	for line := range strings.Lines(string(table)) {
		left, right, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(left), strings.Fields(right)
		if len(fields) < 5 || len(kind) < 2 {
			continue
		}
		if at := unescapeMount(fields[4]); at == dir || strings.HasPrefix(at, dir+"/") {
			found = append(found, aMount{at: at, ours: kind[0] == "overlay" && kind[1] == mountSource})
		}
	}
	return found, nil
}

// realDir is the directory as the mount table has it; its last element is not followed.
func realDir(dir string) (string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	return filepath.Join(parent, filepath.Base(dir)), err
}

// unescapeMount undoes the \ooo of the mount table.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unmountAll takes away everything that is mounted at a directory or below it, also what an agent has mounted. Who is
// still in there keeps what they have open, and finds nothing new.
func unmountAll(dir string) error { return unmountIf(dir, func(string) bool { return true }) }

// unmountBelow leaves what is mounted at the directory itself.
func unmountBelow(dir string) error {
	self, err := realDir(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	return unmountIf(dir, func(at string) bool { return at != self })
}

func unmountIf(dir string, wanted func(at string) bool) error {
	for range 100 { // mounts upon mounts
		mounts, err := mountsBelow(dir)
		mounts = slices.DeleteFunc(mounts, func(m aMount) bool { return !wanted(m.at) })
		if err != nil || len(mounts) == 0 {
			return ignoreMissing(err)
		}
		for _, m := range slices.Backward(mounts) {
			if err := unmount(m.at); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
				return &os.PathError{Op: "unmount", Path: m.at, Err: err}
			}
		}
	}
	return fmt.Errorf("%s: something goes on mounting there: %w", dir, ErrBusy)
}

func unmount(at string) error { return unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) }

// inPrivate runs fn where what it mounts is seen by nobody else and ends with it.
func inPrivate(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // this thread never ends, and is where others look for our mounts
			err := inPrivate(fn)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		// Never unlocked: the thread ends with this function.
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err != nil {
			done <- fmt.Errorf("mounting is not permitted: %w", err)
			return
		}
		done <- fn()
	}()
	return <-done
}
