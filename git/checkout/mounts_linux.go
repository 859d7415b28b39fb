package checkout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// mountsBelow lists the directories below dir, and dir itself, on which something is
// mounted, in the order of mounting.
func mountsBelow(dir string) ([]string, error) {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir)) // as the mount table has it; the last element is not followed
	if err != nil {
		return nil, disk.IgnoreMissing(err)
	}
	dir = filepath.Join(parent, filepath.Base(dir))
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if at := unescapeMount(fields[4]); at == dir || strings.HasPrefix(at, dir+"/") {
			found = append(found, at)
		}
	}
	return found, nil
}

// unescapeMount replaces the \ooo sequences of the mount table.
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

// unmountAll unmounts whatever an agent with the privilege to mount has mounted at a
// directory or below it: otherwise removing the directory would remove what is mounted
// there. Processes that are still in there keep what they have open.
func unmountAll(dir string) error {
	for range 100 { // mounts upon mounts
		mounts, err := mountsBelow(dir)
		if err != nil || len(mounts) == 0 {
			return err
		}
		for _, at := range slices.Backward(mounts) {
			err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
			if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
				return &os.PathError{Op: "unmount", Path: at, Err: err}
			}
		}
	}
	return fmt.Errorf("%s: something keeps mounting there: %w", dir, git.ErrBusy)
}
