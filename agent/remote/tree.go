package remote

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The bounds of the files that one command may send back.
const (
	maxTreeBytes = 8 << 30
	maxTreeFiles = 2 << 20
)

// errTree is wrapped by errors for files that the other end may not send.
var errTree = errors.New("what came back cannot be taken")

// pack writes the content of directories as one tar archive. The names in it start with
// the index of their directory. Directories, regular files and symbolic links are sent;
// sockets, pipes and devices are not. A directory that does not exist is left out, and
// so is a file that disappears meanwhile.
func pack(w io.Writer, dirs []string) error {
	archive := tar.NewWriter(w)
	for i, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
			if err == nil {
				err = packFile(archive, root, name, strconv.Itoa(i)+"/"+name)
			}
			if errors.Is(err, fs.ErrNotExist) && name != "." {
				return nil
			}
			return err
		})
		_ = root.Close()
		if err != nil {
			return fmt.Errorf("pack %s: %w", dir, err)
		}
	}
	return archive.Close()
}

// packFile adds one file to the archive, under another name.
func packFile(archive *tar.Writer, root *os.Root, name, as string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	header := &tar.Header{Name: as, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	switch {
	case info.IsDir():
		header.Typeflag = tar.TypeDir
		return archive.WriteHeader(header)
	case info.Mode()&fs.ModeSymlink != 0:
		header.Typeflag = tar.TypeSymlink
		if header.Linkname, err = root.Readlink(name); err != nil {
			return err
		}
		return archive.WriteHeader(header)
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	n, err := io.Copy(archive, io.LimitReader(f, info.Size()))
	if err == nil && n < info.Size() { // it was cut meanwhile: the archive needs as much as it was told of
		_, err = io.CopyN(archive, zeros{}, info.Size()-n)
	}
	return err
}

// zeros reads as an endless file of zeros.
type zeros struct{}

// Read fills p with zeros.
func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// unpack reads an archive of pack into directories, which exist, one for each index.
// Nothing is written outside of them, whatever the archive says. Directories get their
// permissions when all files are there.
func unpack(r io.Reader, dirs []string) error {
	roots := make([]*os.Root, len(dirs))
	for i, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		defer func() { _ = root.Close() }()
		roots[i] = root
	}
	u := unpacker{roots: roots, bytes: maxTreeBytes, files: maxTreeFiles}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return u.finish()
		}
		if err == nil {
			err = u.file(header, archive)
		}
		if err != nil {
			return err
		}
	}
}

// unpacker writes the files of an archive.
type unpacker struct {
	roots []*os.Root
	// bytes and files are the numbers that may still come.
	bytes, files int64
	closed       []closedDir
}

// closedDir is a directory whose permissions would keep files out of it.
type closedDir struct {
	root *os.Root
	// name is relative to root, mode the permissions that the directory gets at the end.
	name string
	mode fs.FileMode
}

// file writes one file.
func (u *unpacker) file(h *tar.Header, content io.Reader) error {
	index, name, _ := strings.Cut(filepath.ToSlash(h.Name), "/")
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(u.roots) || !filepath.IsLocal(name) {
		return fmt.Errorf("%w: a file has the name %q", errTree, h.Name)
	}
	if u.files--; u.files < 0 {
		return fmt.Errorf("%w: more than %d files", errTree, maxTreeFiles)
	}
	if u.bytes -= max(h.Size, 0); u.bytes < 0 {
		return fmt.Errorf("%w: more than %d bytes", errTree, int64(maxTreeBytes))
	}
	root, mode := u.roots[i], fs.FileMode(h.Mode)&fs.ModePerm
	switch h.Typeflag {
	case tar.TypeDir:
		if name == "." {
			return nil
		}
		if err := root.Mkdir(name, mode|0o700); err != nil {
			return err
		}
		if mode&0o700 != 0o700 {
			u.closed = append(u.closed, closedDir{root, name, mode})
		}
		return nil
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o200)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		if mode&0o200 == 0 {
			err = errors.Join(err, f.Chmod(mode))
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return root.Chtimes(name, h.ModTime, h.ModTime)
	}
	return fmt.Errorf("%w: %q is neither a file, a directory nor a symbolic link", errTree, h.Name)
}

// finish sets the permissions of directories that had to be open until now.
func (u *unpacker) finish() error {
	for _, d := range u.closed {
		if err := d.root.Chmod(d.name, d.mode); err != nil {
			return err
		}
	}
	return nil
}

// replace unpacks an archive and puts its directories in the place of those that are
// there. Until all has arrived, nothing is changed.
func replace(r io.Reader, dirs []string) error {
	fresh := make([]string, len(dirs))
	defer func() {
		for _, dir := range fresh {
			removeAll(dir)
		}
	}()
	for i, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if fresh[i], err = os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".new-"); err != nil {
			return err
		}
		if err := os.Chmod(fresh[i], info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := unpack(r, fresh); err != nil {
		return err
	}
	for i, dir := range dirs {
		old := fresh[i] + ".old"
		if err := os.Rename(dir, old); err != nil {
			return err
		}
		if err := os.Rename(fresh[i], dir); err != nil {
			return errors.Join(err, os.Rename(old, dir))
		}
		fresh[i] = old
	}
	return nil
}

// removeAll removes a directory, also where permissions of directories in it forbid
// that.
func removeAll(dir string) {
	if dir == "" || os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // it is about to be removed
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
