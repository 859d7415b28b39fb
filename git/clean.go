package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// clean removes everything from the working tree that is not in our index. git clean is not enough: it never
// looks at an entry named .git, so a repository planted inside a tracked directory would survive it. What is
// large goes to the trash in one rename.
func (c *Checkout) clean(ctx context.Context) error {
	out, err := run(ctx, c.tree(c.own("index")), "ls-files", "-z", "--stage")
	if err != nil {
		return err
	}
	w := &cleaner{pool: c.pool, root: c.Dir(), files: make(map[string]bool), dirs: make(map[string]bool)}
	for rec := range bytes.SplitSeq(bytes.TrimRight(out, "\x00"), []byte{0}) {
		meta, name, ok := strings.Cut(string(rec), "\t")
		if !ok {
			continue
		}
		if strings.HasPrefix(meta, "160000") { // a submodule is an empty directory
			w.dirs[name] = true
		} else {
			w.files[name] = true
		}
		for dir := path.Dir(name); dir != "." && !w.dirs[dir]; dir = path.Dir(dir) {
			w.dirs[dir] = true
		}
	}
	return w.walk("")
}

type cleaner struct {
	pool  *Pool
	root  string
	files map[string]bool // tracked paths
	dirs  map[string]bool // their directories
}

func (w *cleaner) walk(dir string) error {
	entries, err := os.ReadDir(filepath.Join(w.root, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && w.dirs[name]:
			err = w.walk(name)
		case e.IsDir():
			err = w.pool.throw(filepath.Join(w.root, name))
		case !w.files[name]:
			err = os.Remove(filepath.Join(w.root, name))
		}
		if err != nil {
			return fmt.Errorf("clean %s: %w", name, err)
		}
	}
	return nil
}
