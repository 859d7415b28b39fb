package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// WriteFile replaces the file at path as a whole: a reader or a crash sees the old or
// the new content. It is not flushed: use WriteDurable for what must survive a power
// cut.
func WriteFile(path string, content []byte) error {
	return Place(path, filepath.Dir(path), content, false)
}

// WriteDurable does the same as WriteFile, and the content is on the disk when it returns.
func WriteDurable(path string, content []byte) error {
	return Place(path, filepath.Dir(path), content, true)
}

// Place writes the file in directory by, where a crash may leave it, and moves
// it to path. Both have to be on one file system.
func Place(path, by string, content []byte, durable bool) (err error) {
	f, err := os.CreateTemp(by, "tmp_obj_*") // a name that git prunes, should a crash leave it among the objects
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(content); err != nil {
		return err
	}
	if durable {
		if err = f.Sync(); err != nil {
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil || !durable {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// CopyIndex copies an index file with its modification time: git re-reads files that
// are as young as the index, and a copy that looks younger would hide a change made
// right after the index was written.
func CopyIndex(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := WriteFile(to, b); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, info.ModTime())
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// IsDir reports whether path is a real directory, not a symbolic link to one.
func IsDir(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// Exists reports whether there is an entry at path, also a broken symbolic
// link.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// RemoveAll is os.RemoveAll that gets through directories without permissions. It
// follows no symbolic link.
func RemoveAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) //nolint:gosec // below a directory of ours that no agent is in any more
			if err != nil {        // it could not be read before: now it can
				return removeAllIn(p)
			}
		}
		return nil
	})
	return os.RemoveAll(path)
}

// removeAllIn removes all that is in a directory. The error is that of reading
// it.
func removeAllIn(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		_ = RemoveAll(filepath.Join(dir, e.Name()))
	}
	return err
}

// IgnoreMissing returns nil if err says that a file does not exist, and otherwise err.
func IgnoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
