package process

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/demand"
)

const (
	// diskPause is between two looks at a disk. The files of a command are looked at after
	// diskShare times as long as that took, so that it takes at most a twentieth of a processor.
	diskPause = 250 * time.Millisecond
	diskShare = 20
	// Every command may write diskFloor, also on a disk that is nearly full: a
	// small test does not fail because of what others left. None may exceed
	// diskCeiling, however much is free: it would take days to remove.
	diskFloor   = 1 << 30
	diskCeiling = 64 << 30
	// No command goes on when a disk has less left than a reserveShare of it, or than diskReserve.
	reserveShare = 20
	diskReserve  = 512 << 20
	// deepest is how many directories are looked at below one another. No build makes as many.
	deepest = 200
)

// room tells how much a disk has left.
type room struct {
	bytes, inodes int64
	// least tells how much of each has to stay.
	least struct{ bytes, inodes int64 }
}

// roomOf returns the room of the disk that a directory is on; a disk that
// cannot be asked has all that can be needed.
func roomOf(dir string) room {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return room{bytes: diskCeiling, inodes: diskCeiling}
	}
	r := room{bytes: int64(st.Bavail) * st.Bsize, inodes: int64(st.Ffree)}
	r.least.bytes = min(int64(st.Blocks)*st.Bsize/reserveShare, diskReserve)
	r.least.inodes = int64(st.Files) / reserveShare // some file systems count none
	return r
}

// short reports whether the disk has less left than it has to keep.
func (r room) short() bool { return r.bytes < r.least.bytes || r.inodes < r.least.inodes }

// allows returns how much a command may have written: as much as it has left free. So one that
// fills a disk is ended when it is half way, and several at once leave their part free together.
func (r room) allows() int64 { return min(max(r.bytes, diskFloor), diskCeiling) }

// DiskLimit returns, for pfl-forge doctor, how many bytes a command may write
// to a directory within these bounds.
func DiskLimit(dir string, b demand.Bounds) int64 { return cmp.Or(b.Disk, roomOf(dir).allows()) }

// watchDisk ends a command of a sandbox that writes too much, all its files together,
// until ctx ends. Without privileges there is no quota that the kernel would hold it to.
// So the disk is asked for its room again and again, which costs nothing; only while that
// falls by what a single command may write, its files are looked at, to say who does it.
//
// What a command hides from that look, such as files that are removed and still
// open, the disk counts all the same: when too little is left, the command is
// ended as if the machine had gone, and the attempt is not to blame.
func (c *Command) watchDisk(ctx context.Context, stop context.CancelCauseFunc) {
	if c.Sandbox == nil {
		return
	}
	// What was there before does not count: a checkout may be larger than what
	// may be written to it.
	since := time.Now().Add(-time.Second) // the clock of a file system goes by ticks
	folders := c.writableFolders()
	before := map[string]room{}
	for _, dir := range folders {
		before[dir] = roomOf(dir)
	}
	for next := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(diskPause):
		}
		began, due := time.Now(), time.Now().After(next)
		for _, dir := range folders {
			if err := c.looksAtDisk(ctx, dir, before[dir], since, due); err != nil {
				stop(err)
				return
			}
		}
		if due {
			next = time.Now().Add(diskShare * time.Since(began))
		}
	}
}

// looksAtDisk returns why a command has to end that found this room at a
// directory: ErrDisk, ErrLost, or nothing. Files are looked at if that is due.
func (c *Command) looksAtDisk(ctx context.Context, dir string, before room, since time.Time, due bool) error {
	now := roomOf(dir)
	if now.short() && !before.short() {
		return fmt.Errorf("%w: %w: %d MiB and %d inodes are left at %s", ErrLost, ErrFull, now.bytes>>20, now.inodes, dir)
	}
	most := c.Limits.DiskBytes
	if most <= 0 {
		most = now.allows()
	}
	// Others may have made room meanwhile, so half of it is reason enough to look.
	if !due || before.bytes-now.bytes < most/2 {
		return nil
	}
	w := written{stopped: ctx.Done(), since: since, most: most, seen: map[uint64]bool{}}
	w.enter(unix.AT_FDCWD, dir, 0)
	switch {
	case w.bytes > most:
		return fmt.Errorf("%w (%d MiB and more in %s)", ErrDisk, w.bytes>>20, dir)
	case w.deep:
		return fmt.Errorf("%w (directories that are nested deeper than %d in %s)", ErrDisk, deepest, dir)
	}
	return nil
}

// writableFolders returns the directories outside in which the files are that
// the command writes, each once, and none that is below another one.
func (c *Command) writableFolders() []string {
	var dirs []string
	for _, m := range c.Sandbox.Mounts {
		// Memory of the machine, such as /dev/shm, has a limit of its own, which the kernel holds.
		if m.Kind != sandbox.Writable && m.Kind != sandbox.Layered {
			continue
		}
		dir := m.Path
		if m.To != "" {
			dir = m.To
		}
		dirs = append(dirs, filepath.Clean(dir))
	}
	slices.Sort(dirs)
	outer := dirs[:0]
	for _, dir := range dirs { // those above it came before
		if !slices.ContainsFunc(outer, func(o string) bool { return dir == o || strings.HasPrefix(dir, strings.TrimSuffix(o, "/")+"/") }) {
			outer = append(outer, dir)
		}
	}
	return outer
}

// written sums up the space of files that were changed since a time, whatever
// times they say they have: the time of a change of their state cannot be set.
type written struct {
	stopped <-chan struct{} // ends the look
	since   time.Time
	// bytes is the sum up to now; the look ends when it exceeds most.
	bytes, most int64
	// seen has the files with several names, which count once.
	seen map[uint64]bool
	deep bool
}

// look adds the content of a directory, and closes it. Files are asked for by their directory:
// a path as a whole may be longer than the kernel takes. What is removed meanwhile is left out.
func (w *written) look(fd, depth int) {
	d := os.NewFile(uintptr(fd), "directory")
	defer func() { _ = d.Close() }()
	for {
		list, err := d.ReadDir(256)
		for _, e := range list {
			select {
			case <-w.stopped:
				return
			default:
			}
			if w.bytes > w.most || w.deep {
				return
			}
			w.add(fd, e.Name(), depth)
		}
		if err != nil {
			return
		}
	}
}

// add counts a file of a directory, and what is below it, if it was written
// since the beginning. It takes the names as they are and follows no link: the
// command that is measured may change the tree meanwhile.
func (w *written) add(dir int, name string, depth int) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if time.Unix(st.Ctim.Unix()).After(w.since) && !w.seen[st.Ino] {
		w.bytes += st.Blocks * 512 // a file of 1 TiB that is one hole takes none
		if st.Nlink > 1 && !isDir {
			w.seen[st.Ino] = true
		}
	}
	if !isDir {
		return
	}
	if depth == deepest {
		w.deep = true
		return
	}
	w.enter(dir, name, depth+1)
}

// enter looks at a directory. Where its mode keeps its owner out, who is the user of this
// process, it is let in for as long as the look takes: otherwise a command would hide what
// it writes by a mode. The descriptor is that of this very directory, whatever takes its
// place meanwhile, and the mode that it had comes back unless the command has set another.
func (w *written) enter(at int, name string, depth int) {
	how := unix.O_DIRECTORY | unix.O_CLOEXEC
	if depth > 0 { // the folder itself may be a link of the operator's
		how |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|how, 0)
	if err == nil && searchable(fd) {
		w.look(fd, depth)
		return
	}
	if err == nil {
		_ = unix.Close(fd)
	}
	handle, err := unix.Openat(at, name, unix.O_PATH|how, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(handle) }()
	itself := fmt.Sprintf("/proc/self/fd/%d", handle)
	var had, now unix.Stat_t
	if unix.Fstat(handle, &had) != nil {
		return
	}
	opened := had.Mode&modeBits | unix.S_IRUSR | unix.S_IXUSR
	if unix.Chmod(itself, opened) != nil {
		return // it is another user's: not of this command
	}
	defer func() {
		if unix.Fstat(handle, &now) == nil && now.Mode&modeBits == opened {
			_ = unix.Chmod(itself, had.Mode&modeBits)
		}
	}()
	if fd, err := unix.Open(itself, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		w.look(fd, depth)
	}
}

// modeBits are those of a mode that chmod sets.
const modeBits = 0o7777

// searchable reports whether the files of a directory can be asked for.
func searchable(dir int) bool {
	var st unix.Stat_t
	return unix.Fstatat(dir, ".", &st, 0) == nil
}
