package projection

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// basesKept is how many versions of an intent's file an edit can be based on: an
// editor may show one that was replaced many times since.
const basesKept = 50

// bases keeps former versions of the files of intents, by their revisions. An edit
// is the difference between a person's version and the one that it started from.
type bases struct{ disk *disk.Disk }

// save keeps a version of an intent's file. It is not flushed: a torn copy is
// recognised when it is read.
func (b bases) save(rel string, revision int64, data []byte) error {
	name := layout.BaseFile(layout.Owner(rel), revision)
	if err := b.disk.MakeFolders(path.Dir(name)); err != nil {
		return err
	}
	if err := b.disk.WriteUnflushed(name, data); err != nil {
		return err
	}
	b.disk.Reached("base")
	return b.prune(path.Dir(name))
}

// prune removes the oldest versions of one intent's file.
func (b bases) prune(dir string) error {
	names, err := b.disk.List(dir)
	if err != nil || len(names) <= basesKept {
		return err
	}
	var revisions []int64
	for _, name := range names {
		n, err := strconv.ParseInt(strings.TrimSuffix(name, ".yaml"), 10, 64)
		if err != nil {
			continue
		}
		revisions = append(revisions, n)
	}
	slices.Sort(revisions)
	for _, n := range revisions[:max(0, len(revisions)-basesKept)] {
		if err := b.disk.Remove(path.Join(dir, strconv.FormatInt(n, 10)+".yaml")); err != nil {
			return err
		}
	}
	return nil
}

// get returns the version that a person's edit started from, if it is still there and
// whole.
func (b bases) get(id forge.IntentID, revision int64) (document.Intent, bool) {
	data, _, err := b.disk.Read(layout.BaseFile(id, revision), disk.MaxIntent)
	if err != nil {
		return document.Intent{}, false
	}
	d, _, err := DecodeIntent(data)
	return d, err == nil && d.Revision == revision
}

// plain reports whether an edit holds nothing but the values of its fields, in the
// form in which they are written here, and started from a known version.
func (b bases) plain(rel string, data []byte) bool {
	d, _, err := DecodeIntent(data)
	if err != nil {
		return false
	}
	if _, known := b.get(layout.Owner(rel), d.Revision); !known {
		return false
	}
	again, err := EncodeIntent(d)
	return err == nil && string(again) == string(data)
}
