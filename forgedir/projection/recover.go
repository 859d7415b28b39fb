package projection

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// recover finishes an exchange that a crash interrupted. Afterwards nothing is on its way, and a
// person's versions are in their places or below layout.Kept, nowhere else.
func (x *exchange) recover() error {
	staging, err := x.disk.List(layout.Staging)
	if err != nil {
		return err
	}
	for _, name := range staging {
		if err := x.recoverStaged(name); err != nil {
			return err
		}
	}
	replaced, err := x.disk.List(layout.Replaced)
	if err != nil {
		return err
	}
	for _, name := range replaced { // <path>%<time>
		rel := layout.Unflat(name[:max(0, strings.LastIndexByte(name, '%'))])
		if err := x.putAway(path.Join(layout.Replaced, name), rel); err != nil {
			return err
		}
	}
	return nil
}

// recoverStaged deals with one file of the staging folder, by its ending. A file that
// was moved aside goes back if its place is empty: the crash came between the steps.
func (x *exchange) recoverStaged(name string) error {
	at := path.Join(layout.Staging, name)
	if rel, ok := strings.CutSuffix(name, disk.Staged+disk.Aside); ok {
		rel = layout.Unflat(rel)
		if _, err := x.disk.Stat(rel); errors.Is(err, fs.ErrNotExist) && x.disk.Exists(path.Dir(rel)) {
			return x.disk.Rename(at, rel)
		}
		return x.putAway(at, rel)
	}
	if rel, ok := strings.CutSuffix(name, disk.Staged); ok {
		return x.putAway(at, layout.Unflat(rel))
	}
	return disk.IgnoreMissing(x.disk.Remove(at)) // a look that goes on beside this stages its caches here, and takes them away
}

// putAway deals with a file that was swapped out: a version of ours is removed. A
// person's goes back where edits are read, and is kept elsewhere.
func (x *exchange) putAway(name, rel string) error {
	data, _, err := x.disk.Read(name, disk.MaxOther)
	if errors.Is(err, fs.ErrNotExist) { // a person removed the cache
		return nil
	}
	if err == nil && x.worthless(rel, data) {
		return x.disk.Remove(name)
	}
	if !inside(rel, layout.Intents) && !(layout.IsGoalFile(rel) && x.disk.Exists(path.Dir(rel))) {
		return x.discard(name, rel)
	}
	return x.giveBack(name, rel)
}
