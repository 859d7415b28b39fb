package checkout

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// clean removes everything from the files that is not in an index, and returns the
// paths of the index that are not surely as they were written. git clean is not enough:
// it never looks at an entry named .git, so a repository planted inside a tracked
// directory would survive it. What is large goes to the trash in one rename.
func (f files) clean(index indexFile) (stale []string, err error) {
	w := &cleaner{pool: f.pool}
	err = w.compare(f.dir, index)
	for i, e := range index.entries {
		if !w.same[i] || !w.surely[i] {
			stale = append(stale, e.path)
		}
	}
	return stale, err
}

// compare walks the tree and compares every file with the index. Tracked files
// that differ stay in place and are marked; everything else that is there goes.
func (w *cleaner) compare(root string, index indexFile) error {
	w.root, w.index = root, &index
	w.files, w.dirs = make(map[string]int, len(index.entries)), make(map[string]bool)
	w.same, w.surely = make([]bool, len(index.entries)), make([]bool, len(index.entries))
	for i, e := range index.entries {
		if e.mode>>modeType == gitlink { // an empty directory
			w.dirs[e.path] = true
		}
		w.files[e.path] = i
		for dir := path.Dir(e.path); dir != "." && !w.dirs[dir]; dir = path.Dir(dir) {
			w.dirs[dir] = true
		}
	}
	w.group.SetLimit(runtime.GOMAXPROCS(0))
	err := w.walk("")
	if e := w.group.Wait(); err == nil {
		err = e
	}
	return err
}

// cleaner is the state of one walk. Directories are walked by several
// goroutines; they share same and surely without a lock, because each path has
// its own element.
type cleaner struct {
	pool  *Pool
	root  string
	index *indexFile
	// files has the place in the index by path.
	files map[string]int
	// dirs are the directories of tracked files, and submodules.
	dirs map[string]bool
	// same says of each entry that its file is there as the index has it.
	same []bool
	// surely says of each entry that its file was written before the index, so
	// it cannot have changed unseen.
	surely []bool
	group  errgroup.Group
}

// walk looks at a directory, and at those below it as soon as a goroutine is free.
func (w *cleaner) walk(dir string) error {
	d, err := os.Open(filepath.Join(w.root, dir))
	if err != nil {
		return err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return err
	}
	fd := int(d.Fd())
	for _, e := range entries {
		if err := w.entry(fd, path.Join(dir, e.Name()), e); err != nil {
			return fmt.Errorf("clean %s: %w", path.Join(dir, e.Name()), err)
		}
	}
	return nil
}

// entry looks at one entry of the directory that is open as dir. name is its
// path from the root.
func (w *cleaner) entry(dir int, name string, e os.DirEntry) error {
	at, tracked := w.files[name]
	if tracked && e.IsDir() == (w.index.entries[at].mode>>modeType == gitlink) {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		w.same[at], w.surely[at] = w.index.unchanged(&w.index.entries[at], &st)
	}
	switch {
	case e.IsDir() && w.dirs[name]:
		if w.group.TryGo(func() error { return w.walk(name) }) {
			return nil
		}
		return w.walk(name)
	case !e.IsDir() && tracked:
		return nil
	case e.IsDir():
		return w.pool.throw(filepath.Join(w.root, name))
	}
	return os.Remove(filepath.Join(w.root, name))
}
