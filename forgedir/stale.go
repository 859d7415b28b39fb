package forgedir

import (
	"path"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// removeStale removes the tasks, reviews and the report that an intent does not
// have any more, since it was analyzed again.
func (w *Workspace) removeStale(id forge.IntentID, list []target) error {
	present := make(map[string]bool, len(list))
	for _, t := range list {
		present[t.rel] = true
	}
	var stale []string
	for rel := range w.index.owned[id] {
		if dir := path.Dir(rel); !present[rel] && (dir == workDir || dir == reviewsDir || dir == reportsDir) {
			stale = append(stale, rel)
		}
	}
	slices.Sort(stale)
	for _, rel := range stale {
		if err := w.discard(rel, rel); err != nil {
			return err
		}
		w.reached("removed")
		if err := w.forget(rel); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workspace) forget(rel string) error {
	if err := w.tidyPath(rel); err != nil {
		return err
	}
	delete(w.settled, rel)
	delete(w.seen, rel)
	return w.index.add(false, indexLine{Path: rel})
}

// notice forgets the files that are gone, or that were changed although nobody
// reads changes of them, so that they are written again.
func (w *Workspace) notice() error {
	there := map[string]bool{observations: w.exists(observations), stateFile: w.exists(stateFile)}
	for _, dir := range []string{intentsDir, workDir, reviewsDir, reportsDir, historyDir} {
		entries, err := w.list(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			there[path.Join(dir, e.Name())] = true
		}
	}
	var lines []indexLine
	for rel := range w.index.files {
		if isGoalFile(rel) {
			continue
		}
		gone := !there[rel]
		if !gone && (path.Dir(rel) == intentsDir || !w.touched(rel)) {
			continue
		}
		if gone {
			if err := w.tidyPath(rel); err != nil { // while its versions are known
				return err
			}
			lines = append(lines, indexLine{Path: rel})
		}
		delete(w.settled, rel)
		delete(w.seen, rel)
		if rel == observations {
			if err := w.forgetNotes(); err != nil {
				return err
			}
		} else if id := ownerOf(rel); id != "" && w.index.seqs[id] != 0 {
			lines = append(lines, indexLine{Intent: id})
		}
	}
	if err := w.index.add(false, lines...); err != nil {
		return err
	}
	return w.noticeGoals()
}

// touched reports whether a file holds something else than what was written
// there last.
func (w *Workspace) touched(rel string) bool {
	if w.unchanged(rel) {
		return false
	}
	data, info, err := w.read(rel, maxNotesBytes)
	return err != nil || !w.ours(rel, data, info) || !w.index.latest(rel, digestOf(data))
}

func (w *Workspace) exists(rel string) bool {
	_, err := w.lstat(rel)
	return err == nil
}
