package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Write writes a file inside .forge that no person edits. It is on the disk when
// Write returns; a crash before leaves a part of it.
func (d *Disk) Write(rel string, data []byte) error {
	f, err := d.forge.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, d.Flush(f), f.Close())
}

// WriteUnflushed writes a file inside .forge that can be made again: a power failure
// may tear it.
func (d *Disk) WriteUnflushed(rel string, data []byte) error {
	return d.forge.WriteFile(rel, data, 0o644)
}

// Stage writes the next version of a file into layout.Staging, complete and on the
// disk, from where Swap or MoveNew puts it in place. It returns the path there.
func (d *Disk) Stage(rel string, data []byte) (string, error) {
	name := path.Join(layout.Staging, layout.Flat(rel))
	if err := d.Write(name+Fresh, data); err != nil {
		return "", err
	}
	d.Reached("staged fresh")
	err := d.Rename(name+Fresh, name+Staged)
	d.Reached("staged")
	return name + Staged, err
}

// Append adds data to a file with one write, and makes the file if before is 0. It
// reports false, and writes nothing, if the file is not before bytes long. A crash
// leaves all or a part of data; the part that a full disk let through is taken back.
func (d *Disk) Append(rel string, before int, data []byte) (bool, error) {
	root, name, err := d.place(rel)
	if err != nil {
		return false, err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return false, &KindError{kind(info.Mode())}
	case info.Size() != int64(before):
		return false, nil
	}
	d.Reached("goal opened")
	if n, err := f.Write(data); err != nil {
		if now, bad := f.Stat(); bad == nil && now.Size() == int64(before+n) {
			err = errors.Join(err, f.Truncate(int64(before)))
		}
		return false, err
	}
	d.Reached("goal extended")
	return true, errors.Join(d.Flush(f), d.Sync(path.Dir(rel)))
}

// OpenLog opens a file inside .forge for appending, and makes it if it is missing.
func (d *Disk) OpenLog(rel string) (*os.File, error) {
	return d.forge.OpenFile(rel, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
}

// Sync returns when the entries of folders are on the disk.
func (d *Disk) Sync(dirs ...string) error {
	for _, dir := range dirs {
		f, err := d.openDir(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Flush(f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Create writes a file of the repository, all of it or nothing, unless there is
// something with its name: then it reports false. The name is a path from the
// repository's root.
func (d *Disk) Create(name, text string) (bool, error) {
	to := filepath.Join(d.repository, name)
	if _, err := os.Lstat(to); err == nil {
		return false, nil
	}
	written := path.Join(layout.Staging, path.Base(name)+Fresh)
	if err := d.Write(written, []byte(text)); err != nil {
		return false, err
	}
	d.Reached("init fresh")
	from := filepath.Join(d.repository, layout.Dir, filepath.FromSlash(written))
	err := os.Link(from, to)
	switch {
	case errors.Is(err, fs.ErrExist): // a person was quicker
		return false, d.Remove(written)
	case err != nil: // a file system without links
		err = os.Rename(from, to)
		return err == nil, err
	}
	return true, d.Remove(written)
}
