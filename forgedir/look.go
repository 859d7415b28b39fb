package forgedir

import (
	"context"
	"errors"
	"io/fs"

	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/edits"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
)

// Look reads drafts and edits as Drafts and Edits do, and names the files of intents that
// were removed, too. It changes nothing on the disk, and no other process may be writing.
// Without current it reads the drafts only.
func Look(ctx context.Context, repository string, opts Options, current edits.Current) (inputs []Input, problems []Problem, err error) {
	folder, err := disk.Look(repository)
	if err != nil {
		return nil, nil, disk.IgnoreMissing(err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	refusals := person.Refusals{}
	reader := drafts.Reader{Project: opts.Project, Actor: opts.Actor, Disk: folder, Refusals: refusals}
	inputs, problems, err = reader.Read(ctx)
	if disk.IgnoreMissing(err) != nil || current == nil {
		return inputs, problems, disk.IgnoreMissing(err)
	}
	files, err := projection.Look(folder)
	if err != nil {
		return nil, nil, err
	}
	editing := edits.Reader{Project: opts.Project, Actor: opts.Actor, Disk: folder, Files: files, Refusals: refusals}
	more, wrong, err := editing.Read(ctx, current)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	inputs, problems = append(inputs, more...), append(problems, wrong...)
	for _, rel := range files.Removed(layout.Intents) {
		problems = append(problems, Problem{
			Path: layout.Shown(rel), Reason: "was removed, which changes nothing about the intent",
			Hint: "the next run writes it again; to give the intent up, run pfl-forge cancel " + string(layout.Owner(rel)),
		})
	}
	return inputs, problems, nil
}
