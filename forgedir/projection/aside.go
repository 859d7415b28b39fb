package projection

import (
	"errors"
	"io/fs"
	"maps"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Shown returns the journal sequence up to which the files of each intent are
// written. Intents of which some have to be written again are not in it.
func (f *Files) Shown() map[forge.IntentID]uint64 {
	shown := maps.Clone(f.index.seqs)
	maps.DeleteFunc(shown, func(_ forge.IntentID, seq uint64) bool { return seq == 0 })
	return shown
}

// ShownProject returns the sequence that the project's journal had when files were written last.
func (f *Files) ShownProject() uint64 { return f.index.project }

// RememberProject stores how far the project's journal is.
func (f *Files) RememberProject(seq uint64) error {
	if f.index.project == seq {
		return nil
	}
	return f.index.add(false, indexLine{Project: &seq})
}

// SetAside moves the files of an intent below layout.Kept, as they are, and
// forgets that it was ever written. The files of its goal stay where they are.
// After a crash in between it can be called again.
func (f *Files) SetAside(id forge.IntentID) error {
	for _, rel := range f.Paths(id) {
		if layout.IsGoalFile(rel) {
			continue
		}
		data, _, err := f.disk.Read(rel, disk.MaxOther)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			if _, err := f.exchange.keep(rel, data); err != nil {
				return err
			}
			f.disk.Reached("set aside")
			if err := f.disk.Remove(rel); err != nil {
				return err
			}
		}
		if err := f.Gone(rel); err != nil {
			return err
		}
	}
	return f.Again(id)
}
