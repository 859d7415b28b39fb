package disk

import "golang.org/x/sys/unix"

// swap exchanges two files at once. Each is a name in an open folder.
func swap(fromDir int, from string, toDir int, to string) error {
	return unix.RenameatxNp(fromDir, from, toDir, to, unix.RENAME_SWAP)
}

// moveNew renames a file unless there is one with the new name.
func moveNew(fromDir int, from string, toDir int, to string) error {
	return unix.RenameatxNp(fromDir, from, toDir, to, unix.RENAME_EXCL)
}
