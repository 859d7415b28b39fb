package disk

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"
)

// The endings of files in layout.Staging.
const (
	Fresh  = ".new"   // still being written: worthless after a crash
	Staged = ".swap"  // complete, on its way to its place; or the file that a swap brought out
	Aside  = ".aside" // after Staged: the file that a swap in two steps moved away
)

// Swap exchanges the files at two paths at once. Where the file system cannot, the
// second one is moved aside and back, in three steps.
func (d *Disk) Swap(a, b string) error {
	err := d.between(a, b, swap)
	if !unsupported(err) {
		return err
	}
	away := a + Aside
	if err := d.Rename(b, away); err != nil {
		return err
	}
	d.Reached("aside")
	return errors.Join(d.Rename(a, b), d.Rename(away, a))
}

// MoveNew renames a file unless the new name is taken: then it returns fs.ErrExist.
// Where the file system cannot look and rename at once, a file that takes the name
// between the two is lost.
func (d *Disk) MoveNew(from, to string) error {
	err := d.between(from, to, moveNew)
	if !unsupported(err) {
		return err
	}
	if d.Exists(to) {
		return fs.ErrExist
	}
	return d.Rename(from, to)
}

// Rename moves a file, also from one of the two folders to the other. It replaces
// what has the new name.
func (d *Disk) Rename(from, to string) error { return d.across(from, to, unix.Renameat) }

func (d *Disk) between(a, b string, do func(int, string, int, string) error) error {
	if d.NoSwap {
		return errors.ErrUnsupported
	}
	return d.across(a, b, do)
}

// across opens the folders of two paths and calls do with these and the names there.
func (d *Disk) across(a, b string, do func(int, string, int, string) error) error {
	dirA, err := d.openDir(path.Dir(a))
	if err != nil {
		return err
	}
	defer func() { _ = dirA.Close() }()
	dirB, err := d.openDir(path.Dir(b))
	if err != nil {
		return err
	}
	defer func() { _ = dirB.Close() }()
	if err := do(int(dirA.Fd()), path.Base(a), int(dirB.Fd()), path.Base(b)); err != nil {
		return &os.LinkError{Op: "rename", Old: a, New: b, Err: err}
	}
	return nil
}

func (d *Disk) openDir(rel string) (*os.File, error) {
	root, name, err := d.place(rel)
	if err != nil {
		return nil, err
	}
	return root.Open(name)
}

// unsupported reports whether the file system does not know the flag of a rename.
func unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL)
}
