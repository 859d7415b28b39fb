package natsd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// The names of files and directories in a store directory.
const (
	lockFile     = "lock"
	clientFile   = "client.json"
	jetstreamDir = "jetstream"
)

// storeDir is a store directory that was checked. All access goes through root, an
// open directory, so that a symlink planted later leads nowhere.
type storeDir struct {
	root *os.Root
	// path is absolute and without links. The server needs it, since it takes no open
	// directory, and errors name it.
	path string
}

// close gives up the open directory. Nothing may use it afterwards.
func (d *storeDir) close() { _ = d.root.Close() }

// openDir opens and checks the store directory; the arguments are those of Config. With
// create it makes what is missing and repairs the mode; without, a missing directory is
// fs.ErrNotExist. The caller closes what it returns.
func openDir(rootPath, dir string, create bool) (*storeDir, error) {
	rootPath, rel, err := splitDir(rootPath, dir)
	if err != nil {
		return nil, err
	}
	top, err := os.OpenRoot(rootPath)
	if err != nil {
		return nil, explain("open", rootPath, err)
	}
	defer func() { _ = top.Close() }()
	shown := filepath.Join(rootPath, rel)
	if create {
		if err := makeDirs(top, rel); err != nil {
			return nil, explain("create", shown, err)
		}
	}
	root, err := top.OpenRoot(rel)
	if err != nil {
		return nil, explain("open", shown, err)
	}
	d := &storeDir{root: root}
	if err := d.check(shown, create); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// splitDir returns a directory that exists and the path of the store directory below it,
// which cannot lead out of it.
func splitDir(root, dir string) (string, string, error) {
	if root == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", "", fmt.Errorf("natsd: %w", err)
		}
		return filepath.Dir(abs), filepath.Base(abs), nil
	}
	rel := dir
	if filepath.IsAbs(dir) {
		abs, err := filepath.Abs(root)
		if err != nil {
			return "", "", fmt.Errorf("natsd: %w", err)
		}
		if rel, err = filepath.Rel(abs, dir); err != nil {
			return "", "", fmt.Errorf("natsd: %w", err)
		}
	}
	if !filepath.IsLocal(rel) || filepath.Clean(rel) == "." {
		return "", "", fmt.Errorf("natsd: store directory %q is not inside %q", dir, root)
	}
	return root, filepath.Clean(rel), nil
}

// makeDirs makes the store directory, for this user only, and what is missing above it.
func makeDirs(top *os.Root, rel string) error {
	if parent := filepath.Dir(rel); parent != "." {
		if err := top.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	if err := top.Mkdir(rel, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// check refuses a directory that belongs to another user or that others can
// enter, and sets d.path. With repair it sets a mode that is too wide right
// instead. shown names the directory in errors.
func (d *storeDir) check(shown string, repair bool) error {
	info, err := d.root.Stat(".")
	if err != nil {
		return explain("read", shown, err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("natsd: %s belongs to user %d and this is user %d: run as its owner, or remove it", shown, st.Uid, os.Geteuid())
	}
	if info.Mode().Perm() != 0o700 {
		if !repair {
			return fmt.Errorf("natsd: %s has mode %#o: make it 0700", shown, info.Mode().Perm())
		}
		if err := d.root.Chmod(".", 0o700); err != nil {
			return explain("set the mode of", shown, err)
		}
	}
	resolved, err := filepath.EvalSymlinks(shown)
	if err != nil {
		return explain("resolve", shown, err)
	}
	// Between opening and resolving, another process may have swapped a component.
	if there, err := os.Stat(resolved); err != nil || !os.SameFile(info, there) {
		return fmt.Errorf("natsd: %s was replaced while it was being opened: try again", shown)
	}
	if d.path, err = filepath.Abs(resolved); err != nil {
		return fmt.Errorf("natsd: %w", err)
	}
	return d.checkContent()
}

// checkContent refuses links and special files in place of the lock and of client.json: a
// repository may come with one, and this package would write through it.
func (d *storeDir) checkContent() error {
	for _, name := range []string{lockFile, clientFile} {
		info, err := d.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return explain("read", filepath.Join(d.path, name), err)
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("natsd: %s is not a regular file: remove it", filepath.Join(d.path, name))
		}
	}
	return nil
}

// checkStreams refuses links and special files among those of the streams. It is called by
// the owner, before the server opens them.
func (d *storeDir) checkStreams() error {
	if _, err := d.root.Lstat(jetstreamDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fs.WalkDir(d.root.FS(), jetstreamDir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return explain("read", filepath.Join(d.path, p), err)
		}
		if !e.IsDir() && !e.Type().IsRegular() || p == jetstreamDir && !e.IsDir() {
			return fmt.Errorf("natsd: %s is neither a directory nor a regular file: remove it", filepath.Join(d.path, p))
		}
		return nil
	})
}

// explain returns an error of the file system with what a person can do about it. verb and
// path say what was tried: "write", "/x/probe".
func explain(verb, path string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, unix.EROFS):
		hint = ": the disk is mounted read-only, use a directory on a writable one"
	case errors.Is(err, fs.ErrPermission):
		hint = ": make it writable for this user"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		hint = ": the disk is full or a quota reached, free some space and try again"
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, fs.ErrExist):
		hint = ": a file is in the way, move it"
	case errors.Is(err, fs.ErrNotExist):
	case isEscape(err):
		hint = ": a symlink leads out of the repository, remove it"
	}
	return fmt.Errorf("natsd: cannot %s %s: %w%s", verb, path, err, hint)
}

// isEscape recognises os.Root's refusal, which has no exported error value.
func isEscape(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if err.Error() == "path escapes from parent" {
			return true
		}
	}
	return false
}
