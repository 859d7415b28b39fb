package forgedir

import (
	"bytes"
	"errors"
	"io/fs"
	"path"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// Shown returns the journal sequence that the files of each intent show. A journal that ends
// before it has lost something. Intents whose files have to be written again are not in it.
func (d *Dir) Shown() map[forge.IntentID]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files.Shown()
}

// ShownProject returns the sequence that the project's journal had when files were written last.
func (d *Dir) ShownProject() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files.ShownProject()
}

// RememberProject stores how far the project's journal is, once the files show
// what follows from it.
func (d *Dir) RememberProject(seq uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files.RememberProject(seq)
}

// ShownIn is Shown and ShownProject for a repository whose folder is not open
// here. It changes nothing.
func ShownIn(repository string) (shown map[forge.IntentID]uint64, project uint64, err error) {
	l, err := OpenLook(repository, Options{}, false)
	if err != nil {
		return nil, 0, err
	}
	shown, project = l.Shown()
	return shown, project, l.Close()
}

// SetAside moves the files of an intent into the folder of what is kept, as
// they are. Write writes them anew.
func (d *Dir) SetAside(id forge.IntentID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files.SetAside(id)
}

// ReadIntent reads the file of an intent, whoever wrote it; false if there is
// none that can be read.
func (d *Dir) ReadIntent(id forge.IntentID) (document.Intent, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	data, _, err := d.disk.Read(layout.IntentFile(id), disk.MaxIntent)
	if err != nil {
		return document.Intent{}, false
	}
	doc, _, err := projection.DecodeIntent(data)
	return doc, err == nil
}

// Redraft writes a draft that asks for the intent of a file once more, and
// returns its path from the repository's root. A draft of that name which says
// something else stays: then the error is fs.ErrExist.
func (d *Dir) Redraft(id forge.IntentID, doc *document.Intent) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rel := path.Join(layout.Drafts, string(id)+".md")
	text, err := drafts.Encode(&document.Draft{
		Title: doc.Title, Type: doc.Type, Risk: doc.Risk, Criteria: doc.Criteria, Goal: doc.Goal, DependsOn: doc.DependsOn, Settings: doc.Settings,
	}, doc.Body)
	if err != nil {
		return "", err
	}
	there, _, err := d.disk.Read(rel, disk.MaxOther)
	switch {
	case err == nil && bytes.Equal(there, text):
		return layout.Shown(rel), nil
	case err == nil:
		return layout.Shown(rel), fs.ErrExist
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	staged := path.Join(layout.Staging, layout.Flat(rel)+disk.Fresh)
	if err := d.disk.Write(staged, text); err != nil {
		return "", err
	}
	if err := d.disk.MoveNew(staged, rel); err != nil {
		return "", err
	}
	return layout.Shown(rel), d.disk.Sync(layout.Drafts)
}
