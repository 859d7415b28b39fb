package forgedir

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// basesKept is how many versions of an intent's file an edit can be based on:
// an editor may show one that was replaced many times since.
const basesKept = 50

// saveBase keeps a version of an intent's file for the comparison with what a
// person makes of it. It is not flushed: a torn copy is recognised.
func (w *Workspace) saveBase(rel string, revision int64, data []byte) error {
	id := ownerOf(rel)
	name := baseFile(id, revision)
	if err := w.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := w.root.WriteFile(name, data, 0o644); err != nil {
		return err
	}
	w.reached("base")
	return w.pruneBases(path.Dir(name))
}

func (w *Workspace) pruneBases(dir string) error {
	entries, err := w.list(dir)
	if err != nil || len(entries) <= basesKept {
		return err
	}
	var revisions []int64
	for _, e := range entries {
		n, err := strconv.ParseInt(strings.TrimSuffix(e.Name(), ".yaml"), 10, 64)
		if err != nil {
			continue
		}
		revisions = append(revisions, n)
	}
	slices.Sort(revisions)
	for _, n := range revisions[:max(0, len(revisions)-basesKept)] {
		if err := w.root.Remove(path.Join(dir, strconv.FormatInt(n, 10)+".yaml")); err != nil {
			return err
		}
	}
	return nil
}

// base returns the version that a person's edit started from, if it is still known.
func (w *Workspace) base(id forge.IntentID, revision int64) (document.Intent, bool) {
	data, _, err := w.read(baseFile(id, revision), maxIntentBytes)
	if err != nil {
		return document.Intent{}, false
	}
	d, _, err := decodeIntent(data)
	return d, err == nil && d.Revision == revision
}

// plain reports whether an edit holds nothing but the values of its fields, in
// the form in which they are written here, and started from a known version.
func (w *Workspace) plain(rel string, data []byte) bool {
	d, _, err := decodeIntent(data)
	if err != nil {
		return false
	}
	if _, known := w.base(ownerOf(rel), d.Revision); !known {
		return false
	}
	again, err := encodeIntent(d)
	return err == nil && string(again) == string(data)
}
