package disk

import "golang.org/x/sys/unix"

// swap exchanges two files at once. Each is a name in an open folder.
func swap(fromDir int, from string, toDir int, to string) error {
	return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_EXCHANGE)
}

// moveNew renames a file unless there is one with the new name.
func moveNew(fromDir int, from string, toDir int, to string) error {
	return unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
}
