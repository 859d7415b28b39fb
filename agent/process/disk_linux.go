package process

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

const (
	// diskPause is between two looks at what a command has written, and diskShare how many times as long as the look
	// took, so that looks take at most a twentieth of a processor.
	diskPause = 250 * time.Millisecond
	diskShare = 20
	// Every command may write diskFloor, also on a disk that is nearly full: a small test does not fail because of
	// what others left. None may exceed diskCeiling, however much is free: it would take days to remove.
	diskFloor   = 1 << 30
	diskCeiling = 64 << 30
)

// watchDisk ends a command of a sandbox that writes too much, all its files together, until ctx ends. Without privileges there
// is no quota that the kernel would hold it to, so it is looked at again and again.
func (c *Command) watchDisk(ctx context.Context, stop context.CancelCauseFunc) {
	if c.Sandbox == nil {
		return
	}
	// What was there before does not count: a checkout may be larger than what may be written to it.
	began := time.Now().Add(-time.Second) // the clock of a file system goes by ticks
	folders := c.writableFolders()
	for pause := diskPause; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		look := time.Now()
		for _, dir := range folders {
			most := c.Limits.DiskBytes
			if most <= 0 {
				most = diskLimit(dir)
			}
			// Directories of one disk are looked at each by itself: the bound is what is free, and each
			// shrinks it for the others.
			if n := written(ctx, dir, began); n > most {
				stop(fmt.Errorf("%w (%d MiB in %s)", ErrDisk, n>>20, dir))
				return
			}
		}
		pause = max(diskPause, diskShare*time.Since(look))
	}
}

// writableFolders returns the directories outside in which the files are that the command writes.
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
		dirs = append(dirs, dir)
	}
	return dirs
}

// diskLimit returns how much a command may have written to a directory: as much as it has left free there. So one that fills a
// disk is ended when it is half way, and several at once leave their part free together.
func diskLimit(dir string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return diskCeiling
	}
	return min(max(int64(st.Bavail)*st.Bsize, diskFloor), diskCeiling)
}

// written returns how many bytes of the disk the files take that were changed since a time, whatever times they say they have: the
// time of a change of their state cannot be set.
func written(ctx context.Context, dir string, since time.Time) int64 {
	var sum int64
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // what is removed meanwhile, or not to be read, is left out
		}
		info, err := e.Info()
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		// Blocks, because a file of 1 TiB that is one hole takes none. A file with several names counts once.
		if ok && time.Unix(st.Ctim.Unix()).After(since) && !seen[st.Ino] {
			sum += st.Blocks * 512
			seen[st.Ino] = st.Nlink > 1
		}
		return nil
	})
	return sum
}
