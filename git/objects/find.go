package objects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/pfl-forge/pfl-forge/git"
)

// Finder finds all links of a commit, and the files that are wanted by their
// names. It caches the directories of the last commit, so the next one reads
// only the directories that differ. It is safe for concurrent use.
type Finder struct {
	db *Database
	// file says whether a file of this name is wanted, below whether all files
	// in a directory of this name are.
	file, below func(name string) bool

	mu   sync.Mutex
	seen map[dirKey]directory
}

// Found is a link or a wanted file.
type Found struct {
	// Path is from the root of the repository.
	Path string
	// Link says that it is a symbolic link.
	Link bool
	// Content is the link's target, or the file's text; empty for a file that is larger
	// than a mebibyte.
	Content string
}

// dirKey names a directory by its tree, and says whether all files of it are wanted.
type dirKey struct {
	tree git.OID
	all  bool
}

// directory has the wanted entries of one tree, with their names as paths, and the
// directories in it.
type directory struct {
	found []Found
	dirs  map[string]dirKey
}

// maxFound bounds the content of one found file, in bytes.
const maxFound = 1 << 20

// NewFinder returns a Finder of files whose names satisfy file, and of all that are in
// directories, at any depth, whose names satisfy below.
func NewFinder(db *Database, file, below func(name string) bool) *Finder {
	return &Finder{db: db, file: file, below: below}
}

// Find returns the links and wanted files of a commit, sorted by path. A caller may keep the
// list. Error: ErrNotFound if the commit is not in
// the store.
func (f *Finder) Find(ctx context.Context, commit git.OID) ([]Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.db.NewReader(ctx)
	defer r.Close()
	c, err := r.Commit(commit)
	if err != nil {
		return nil, err
	}
	w := finding{Finder: f, objects: r, now: map[dirKey]directory{}}
	if err := w.visit("", dirKey{tree: c.Tree}); err != nil {
		return nil, err
	}
	f.seen = w.now
	slices.SortFunc(w.list, func(a, b Found) int { return strings.Compare(a.Path, b.Path) })
	return w.list, nil
}

// finding is one call of Find.
type finding struct {
	*Finder
	objects *Reader
	// now has the directories of this commit.
	now  map[dirKey]directory
	list []Found
}

// visit adds the entries of a directory and of those below it. A tree that stands in several
// places is read once.
func (w *finding) visit(at string, key dirKey) error {
	d, ok := w.now[key]
	if !ok {
		// Trees never change, so one that an earlier commit had is the same.
		d, ok = w.seen[key]
	}
	if !ok {
		var err error
		if d, err = w.read(key); err != nil {
			return err
		}
	}
	w.now[key] = d
	for _, found := range d.found {
		found.Path = path.Join(at, found.Path)
		w.list = append(w.list, found)
	}
	for _, name := range slices.Sorted(maps.Keys(d.dirs)) {
		if err := w.visit(path.Join(at, name), d.dirs[name]); err != nil {
			return err
		}
	}
	return nil
}

// read reads one tree, and the content of what is wanted in it.
func (w *finding) read(key dirKey) (directory, error) {
	raw, err := w.objects.read(key.tree, "tree", maxTree)
	if err != nil {
		return directory{}, err
	}
	entries, ok := parseTree(raw)
	if !ok {
		return directory{}, fmt.Errorf("tree %s cannot be read", key.tree)
	}
	d := directory{dirs: map[string]dirKey{}}
	for name, e := range entries {
		switch {
		case e.isTree():
			d.dirs[name] = dirKey{tree: git.OID(e.oid), all: key.all || w.below(name)}
			continue
		case !e.isLink() && !(e.isFile() && (key.all || w.file(name))):
			continue
		}
		content, err := w.objects.read(git.OID(e.oid), "blob", maxFound)
		if err != nil && !errors.Is(err, git.ErrTooLarge) {
			return directory{}, err
		}
		d.found = append(d.found, Found{Path: name, Link: e.isLink(), Content: string(content)})
	}
	return d, nil
}
