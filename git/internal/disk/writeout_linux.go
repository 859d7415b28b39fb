package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeOut gives the file's content to the disk without waiting for the disk's own cache.
func writeOut(f *os.File) error {
	const whole = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	if unix.SyncFileRange(int(f.Fd()), 0, 0, whole) == nil {
		return nil
	}
	return f.Sync() // a file system that cannot
}
