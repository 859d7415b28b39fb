package disk

import (
	"io/fs"
	"syscall"
)

// Stamp describes a version of a regular file, for who wants to know without
// reading it whether it is still that one.
type Stamp struct {
	Size  int64
	Inode uint64
	// Modified is the time that programs show and set, and Changed the one that only the file
	// system sets: at every change of content, name or rights. Both are in nanoseconds since 1970.
	Modified, Changed int64
}

// StampOf returns the Stamp of a file. It is not ok for what is no regular
// file, and where the system does not tell.
func StampOf(info fs.FileInfo) (s Stamp, ok bool) {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return Stamp{}, false
	}
	changed, ok := changedAt(sys)
	return Stamp{Size: info.Size(), Inode: sys.Ino, Modified: info.ModTime().UnixNano(), Changed: changed}, ok
}
