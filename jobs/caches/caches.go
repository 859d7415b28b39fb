// Package caches keeps what the commands of a project cache, such as compiled packages and
// downloaded modules, and keeps one change from writing what another one reads.
//
// Commands run before a change is reviewed, and a program that writes to a build cache decides
// which code others run. So a command reads the caches, and writes to a layer of its own above
// them. A layer is kept if the tree that it was made from is that of a commit on the base
// branch: a change that has passed all rules may leave something behind. All others are thrown
// away. Caches that an operator names, with GOCACHE for example, are only ever read.
package caches

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/git"
)

const (
	// kept has the caches, a directory for each, and awaited the layers of trees that may land.
	kept, awaited = "kept", "awaited"
	// own is the cache of the project itself, for everything that no Shared names.
	own = "own"
	// written is the part of a cache in a layer that commands write to. Beside it is the directory
	// that the sandbox needs.
	written = "new"
	// full marks caches that have grown beyond maxBytes: the next start begins anew.
	full = "full"
	// lockFile is held while layers are taken.
	lockFile = "lock"
	// maxAwaited bounds the layers that wait for their trees to land. The oldest are thrown away.
	maxAwaited = 8
	// maxBytes bounds all caches of a project together.
	maxBytes = 20 << 30
)

// Shared is a cache that an operator lets all projects read.
type Shared struct {
	// Name is that of its variable, and Dir the value, an absolute path.
	Name, Dir string
}

// Caches are those of one project. It is safe for concurrent use, in several processes.
type Caches struct {
	dir    string
	shared []Shared
	bytes  int64 // at most, of all that is kept
}

// New returns the caches of the project that has dir for them alone. Caches that have become too
// large are removed: no command of the project may be running.
func New(dir string, shared ...Shared) (*Caches, error) {
	c := &Caches{dir: dir, shared: shared, bytes: maxBytes}
	if err := os.MkdirAll(c.Own(), 0o755); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(filepath.Join(dir, full)); err != nil {
		return c, nil //nolint:nilerr // they are not
	}
	err := errors.Join(RemoveAll(filepath.Join(dir, kept)), RemoveAll(filepath.Join(dir, awaited)))
	if err == nil {
		err = os.Remove(filepath.Join(dir, full))
	}
	return c, errors.Join(err, os.MkdirAll(c.Own(), 0o755))
}

// Own returns the directory of the project's own cache, which no operator shares.
func (c *Caches) Own() string { return c.cache(own) }

// cache returns the directory of what is kept of the cache with this name.
func (c *Caches) cache(name string) string { return filepath.Join(c.dir, kept, name) }

// Mounts returns the caches as commands see them that write to the given layer, a directory
// of the same file system. Shared ones are among them.
func (c *Caches) Mounts(layer string) ([]sandbox.Mount, error) {
	out, err := c.OwnMounts(layer)
	for _, s := range c.shared {
		m, failed := mount(s.Dir, filepath.Join(layer, s.Name), c.cache(s.Name), s.Dir)
		out, err = append(out, m), errors.Join(err, failed)
	}
	return out, err
}

// OwnMounts returns the project's own cache alone, as commands see it that write to the layer.
func (c *Caches) OwnMounts(layer string) ([]sandbox.Mount, error) {
	m, err := mount(c.Own(), filepath.Join(layer, own), c.Own())
	return []sandbox.Mount{m}, err
}

// Below returns a part of a shared cache, kept and shared, for commands that do not see the cache
// itself.
func (c *Caches) Below(layer string, s Shared, part string) (sandbox.Mount, error) {
	dir := filepath.Join(s.Dir, part)
	return mount(dir, filepath.Join(layer, "below-"+s.Name), filepath.Join(c.cache(s.Name), part), dir)
}

// mount returns a path that shows those of the directories below that are there, and is written to
// the layer.
func mount(at, layer string, below ...string) (sandbox.Mount, error) {
	m := sandbox.Mount{Path: at, Kind: sandbox.Layered, To: filepath.Join(layer, written), Cache: true}
	for _, dir := range below {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			m.Below = append(m.Below, dir)
		}
	}
	return m, errors.Join(os.MkdirAll(m.To, 0o700), os.MkdirAll(m.Work(), 0o700))
}

// Merged returns the trees of the newest commits of the base branch.
type Merged func(context.Context) ([]git.OID, error)

// Keep takes over the layer of commands that ran on a tree alone: at once if the tree is merged,
// and otherwise when TakeOver finds that it has.
func (c *Caches) Keep(ctx context.Context, layer string, tree git.OID, merged Merged) error {
	lock, err := git.LockFile(ctx, filepath.Join(c.dir, lockFile))
	if err != nil {
		return err
	}
	defer lock.Close()
	to := filepath.Join(c.dir, awaited, string(tree))
	if err := errors.Join(RemoveAll(to), os.MkdirAll(filepath.Dir(to), 0o700)); err != nil {
		return err
	}
	if err := os.Rename(layer, to); err != nil {
		return err
	}
	return c.takeOver(ctx, merged)
}

// TakeOver takes over the layers that wait, of trees that are merged. It asks
// for those only if a layer waits.
func (c *Caches) TakeOver(ctx context.Context, merged Merged) error {
	if list, err := os.ReadDir(filepath.Join(c.dir, awaited)); err != nil || len(list) == 0 {
		return nil
	}
	lock, err := git.LockFile(ctx, filepath.Join(c.dir, lockFile))
	if err != nil {
		return err
	}
	defer lock.Close()
	return c.takeOver(ctx, merged)
}

// takeOver takes over layers, or throws them away. The caller holds the lock.
func (c *Caches) takeOver(ctx context.Context, merged Merged) error {
	waiting, err := os.ReadDir(filepath.Join(c.dir, awaited))
	if err != nil || len(waiting) == 0 {
		return err
	}
	trees, err := merged(ctx)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(c.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var errs []error
	var left []fs.FileInfo
	for _, w := range waiting {
		if slices.Contains(trees, git.OID(w.Name())) {
			errs = append(errs, c.take(root, w.Name()))
		} else if info, err := w.Info(); err == nil {
			left = append(left, info)
		}
	}
	slices.SortFunc(left, func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	for _, old := range left[min(len(left), maxAwaited):] {
		errs = append(errs, RemoveAll(filepath.Join(c.dir, awaited, old.Name())))
	}
	return errors.Join(errs...)
}

// take moves the entries of a layer that the caches do not have to them, and removes the rest. A
// layer adds, and changes nothing that is there.
func (c *Caches) take(root *os.Root, tree string) error {
	layer := path.Join(awaited, tree)
	size, err := clean(root, layer)
	if err != nil {
		return fmt.Errorf("look through a layer of caches: %w", err)
	}
	before, err := measure(root, kept)
	if err != nil {
		return err
	}
	if before+size > c.bytes {
		err = errors.Join(root.WriteFile(full, nil, 0o600), RemoveAll(filepath.Join(c.dir, layer)))
		return errors.Join(fmt.Errorf("the caches are full (%d MB): they begin anew with the next start", before>>20), err)
	}
	names := []string{own}
	for _, s := range c.shared {
		names = append(names, s.Name)
	}
	var errs []error
	for _, name := range names {
		from := path.Join(layer, name, written)
		if _, err := root.Lstat(from); err == nil {
			errs = append(errs, root.MkdirAll(path.Join(kept, name), 0o755), add(root, from, path.Join(kept, name)))
		}
	}
	return errors.Join(append(errs, RemoveAll(filepath.Join(c.dir, layer)))...)
}

// add moves each entry of a directory that another one does not have, as a whole: programs take a
// directory that is there for complete. Of directories that both have it moves the entries.
func add(root *os.Root, from, to string) error {
	entries, err := fs.ReadDir(root.FS(), from)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		source, target := path.Join(from, e.Name()), path.Join(to, e.Name())
		there, err := root.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			errs = append(errs, root.Rename(source, target))
		case err != nil:
			errs = append(errs, err)
		case there.IsDir() && e.IsDir():
			errs = append(errs, add(root, source, target))
		}
	}
	return errors.Join(errs...)
}

// clean removes everything from a layer that is no plain file or directory, and returns the size of
// the rest. The layer was written by commands of a change: links lead anywhere, and a file may run
// with the rights of its owner. An overlay file system notes deleted files there, too.
func clean(root *os.Root, dir string) (size int64, err error) {
	err = fs.WalkDir(root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case d.IsDir():
			return root.Chmod(name, 0o755)
		case mode.IsRegular() && mode&^fs.ModePerm == 0:
			size += info.Size()
			return nil
		}
		return root.Remove(name)
	})
	return size, err
}

// measure returns the size of the files below a directory.
func measure(root *os.Root, dir string) (size int64, err error) {
	err = fs.WalkDir(root.FS(), dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}

// RemoveAll removes a tree, including directories without write permission, such as
// those of Go's module cache.
func RemoveAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // to remove it
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(path))
}
