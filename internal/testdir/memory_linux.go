package testdir

import "golang.org/x/sys/unix"

// memory is where Linux keeps files in memory.
const memory = "/dev/shm"

// free returns how many bytes are free in a directory of a file system in memory; 0 if it
// is not one.
func free(dir string) uint64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Type != unix.TMPFS_MAGIC {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
