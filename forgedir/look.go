package forgedir

import (
	"context"
	"errors"
	"io/fs"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/edits"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// Look is a look at a repository's folder that changes nothing there but a
// cache of its own. It is not safe for concurrent use.
type Look struct {
	opts Options
	disk *disk.Disk // nil if there is no folder
	// files is nil if there is no index to be read.
	files *projection.Files
}

// OpenLook begins a look. Close ends it. One that is quick goes on from what
// the quick look before it has read: it reads what has changed since, as the
// file system tells, and keeps that for the next one where it can.
func OpenLook(repository string, opts Options, quick bool) (*Look, error) {
	folder, err := disk.Look(repository)
	if err != nil {
		return &Look{}, disk.IgnoreMissing(err)
	}
	read := projection.Look
	if quick {
		read = projection.LookAgain
	}
	files, err := read(folder)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return &Look{opts, folder, files}, nil
}

// Close ends the look.
func (l *Look) Close() error {
	if l.disk == nil {
		return nil
	}
	l.files.EndLook()
	return l.disk.Close()
}

// Shown is Dir.Shown and Dir.ShownProject.
func (l *Look) Shown() (shown map[forge.IntentID]uint64, project uint64) {
	if l.disk == nil {
		return nil, 0
	}
	return l.files.Shown(), l.files.ShownProject()
}

// Read reads drafts and edits as Drafts and Edits do, and names the files of intents that
// were removed, too. No other process may be writing. Without current it reads the drafts only.
func (l *Look) Read(ctx context.Context, current edits.Current) (inputs []Input, problems []Problem, err error) {
	if l.disk == nil {
		return nil, nil, nil
	}
	refusals := person.Refusals{}
	reader := drafts.Reader{Project: l.opts.Project, Actor: l.opts.Actor, Disk: l.disk, Refusals: refusals}
	inputs, problems, err = reader.Read(ctx)
	if disk.IgnoreMissing(err) != nil || current == nil {
		return inputs, problems, disk.IgnoreMissing(err)
	}
	editing := edits.Reader{Project: l.opts.Project, Actor: l.opts.Actor, Disk: l.disk, Files: l.files, Refusals: refusals}
	more, wrong, err := editing.Read(ctx, current)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	inputs, problems = append(inputs, more...), append(problems, wrong...)
	for _, rel := range l.files.Removed() {
		problems = append(problems, Problem{
			Path: layout.Shown(rel), Reason: "was removed, which changes nothing about the intent",
			Hint: "the next run writes it again; to give the intent up, run pfl-forge cancel " + string(layout.Owner(rel)),
		})
	}
	return inputs, problems, nil
}
