package forgedir

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// recover finishes what a crash interrupted. Afterwards nothing is on its way,
// and no person's version is anywhere but in its place or under .forge/kept.
func (w *Workspace) recover() error {
	staging, err := w.list(stagingDir)
	if err != nil {
		return err
	}
	for _, e := range staging {
		if err := w.recoverStaged(e.Name()); err != nil {
			return err
		}
	}
	replaced, err := w.list(replacedDir)
	if err != nil {
		return err
	}
	for _, e := range replaced {
		rel := unflat(e.Name()[:max(0, strings.LastIndexByte(e.Name(), '%'))])
		if err := w.settleOut(path.Join(replacedDir, e.Name()), rel); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) recoverStaged(name string) error {
	at := path.Join(stagingDir, name)
	if rel, ok := strings.CutSuffix(name, staged+aside); ok {
		rel = unflat(rel)
		if _, err := w.lstat(rel); errors.Is(err, fs.ErrNotExist) && w.exists(path.Dir(rel)) {
			return w.rename(at, rel)
		}
		return w.settleOut(at, rel)
	}
	if rel, ok := strings.CutSuffix(name, staged); ok {
		return w.settleOut(at, unflat(rel))
	}
	return w.root.Remove(at)
}

// settleOut deals with a file that was swapped out: a version of ours is
// removed, a person's goes back or is kept.
func (w *Workspace) settleOut(name, rel string) error {
	data, _, err := w.read(name, maxNotesBytes)
	if isMissing(err) { // a person removed the cache
		return nil
	}
	if err == nil && (len(data) == 0 || w.index.ours(rel, digestOf(data))) {
		return w.root.Remove(name)
	}
	if path.Dir(rel) != intentsDir && !(isGoalFile(rel) && w.exists(path.Dir(rel))) {
		return w.discard(name, rel)
	}
	return w.giveBack(name, rel)
}

// tidy removes files that were swapped out long enough ago, and gives back
// what an editor still wrote into one.
func (w *Workspace) tidy() error {
	now := time.Now()
	for len(w.replaced) > 0 && now.Sub(w.replaced[0].at) >= w.linger {
		out := w.replaced[0]
		w.replaced = w.replaced[1:]
		if err := w.settleOut(path.Join(replacedDir, out.name), out.rel); err != nil {
			return err
		}
	}
	return nil
}

// tidyPath makes sure that at most one former version of a file is around.
func (w *Workspace) tidyPath(rel string) error {
	i := slices.IndexFunc(w.replaced, func(s swappedOut) bool { return s.rel == rel })
	if i < 0 {
		return nil
	}
	out := w.replaced[i]
	w.replaced = slices.Delete(w.replaced, i, i+1)
	return w.settleOut(path.Join(replacedDir, out.name), rel)
}

// list returns the entries of a directory, sorted by name.
func (w *Workspace) list(dir string) ([]fs.DirEntry, error) {
	return fs.ReadDir(w.root.FS(), dir)
}
