package forgedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/edits"
	"github.com/pfl-forge/pfl-forge/forgedir/goals"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
	"github.com/pfl-forge/pfl-forge/forgedir/records"
	"github.com/pfl-forge/pfl-forge/forgedir/schemas"
	"github.com/pfl-forge/pfl-forge/quota"
)

// Input holds the requests of one file as events, see person.Input.
type Input = person.Input

// Problem says why a person's file was refused, or needs a look, see person.Problem.
type Problem = person.Problem

// Options says on whose behalf a folder speaks.
type Options struct {
	Project forge.ProjectID // the receiver of the events
	Actor   string          // the person behind the edits; may be empty
	Log     *slog.Logger    // nil: nothing is logged
}

// Dir is the .forge folder of one repository, with the .e8 folder beside it. One
// process at a time may write to it; within the process it is safe for concurrent use.
type Dir struct {
	mu    sync.Mutex // held by every exported method
	disk  *disk.Disk
	files *projection.Files

	drafts   *drafts.Reader
	edits    *edits.Reader
	refusals person.Refusals // of both

	notebook *records.Notebook
	overview *records.Overview
	goals    *goals.Writer
}

// Open makes the folder in a repository's root where it is missing, has git ignore it,
// and repairs the damage of a crash. It refuses a folder that a symbolic link stands in
// for.
func Open(repository string, opts Options) (*Dir, error) {
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	folder, err := disk.Open(repository)
	if err != nil {
		return nil, err
	}
	files, err := prepare(folder, log)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	refusals := person.Refusals{}
	return &Dir{
		disk: folder, files: files, refusals: refusals,
		drafts:   &drafts.Reader{Project: opts.Project, Actor: opts.Actor, Disk: folder, Refusals: refusals},
		edits:    &edits.Reader{Project: opts.Project, Actor: opts.Actor, Disk: folder, Files: files, Refusals: refusals},
		notebook: &records.Notebook{Disk: folder, Files: files},
		overview: &records.Overview{Disk: folder, Files: files},
		goals:    &goals.Writer{Disk: folder, Files: files, Log: log},
	}, nil
}

// prepare has git ignore the folder, opens the files that are written there, and adds the
// schemas that editors check drafts with.
func prepare(folder *disk.Disk, log *slog.Logger) (*projection.Files, error) {
	if err := folder.Ignore(layout.Dir); err != nil {
		return nil, err
	}
	files, err := projection.Open(folder, log)
	if err != nil {
		return nil, err
	}
	if err := schemas.Write(folder); err != nil {
		return nil, errors.Join(err, files.Close())
	}
	return files, nil
}

// Close ends the use of the folder.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.files.Close(), d.disk.Close())
}

// renew makes again the parts of the folder that a person removed while it is in use.
func (d *Dir) renew() error {
	if err := d.disk.Renew(); err != nil {
		return err
	}
	if err := schemas.Renew(d.disk); err != nil {
		return err
	}
	return d.files.Renew()
}

// Drafts reads the drafts: each as an input with one Submit event, or as problems. The
// inputs are in the order of their names; drafts.CheckDependencies puts them in the
// order in which they can be submitted.
func (d *Dir) Drafts(ctx context.Context) ([]Input, []Problem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.renew(); err != nil {
		return nil, nil, err
	}
	return d.drafts.Read(ctx)
}

// Edits reads the files of intents that a person changed, each as an input with the
// events that the changes amount to, or as problems. A file with a problem makes no
// events at all. Current must not use the Dir. Files that are gone are noticed, see
// Projected.
func (d *Dir) Edits(ctx context.Context, current edits.Current) ([]Input, []Problem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.renew(); err != nil {
		return nil, nil, err
	}
	if err := d.notice(); err != nil {
		return nil, nil, err
	}
	return d.edits.Read(ctx, current)
}

// notice has intents written again whose files are gone, or were changed although no
// edits of them are read.
func (d *Dir) notice() error {
	if err := d.files.Tidy(); err != nil {
		return err
	}
	changed, err := d.files.Notice()
	if err != nil {
		return err
	}
	if slices.Contains(changed, layout.Observations) {
		d.notebook.Forget()
	}
	return d.goals.Notice()
}

// Decided takes the rulings on an input: one for each of its events, in their order,
// once these are in the journal. The first refusal ends them: the events after it must
// not be asked for. A draft whose event was not refused moves to intent-drafts/imported;
// an edit may be overwritten from now on. A refused version is a problem, here and in
// every later scan, until the person changes the file. A file that changed since it
// was read is left for the next scan.
func (d *Dir) Decided(in Input, rulings []forge.Ruling) ([]Problem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, r := range rulings[:min(len(rulings), len(in.Events))] {
		if quota.Exceeded(r) {
			return []Problem{in.Refused(i, r, in.Source.Fields[:i])}, nil // and asked for again by the next scan
		}
		if r.Decision == forge.Refused {
			return d.refusals.Add(&in, in.Refused(i, r, in.Source.Fields[:i])), nil
		}
	}
	if len(rulings) != len(in.Events) {
		return nil, fmt.Errorf("%s: %d rulings on %d events", in.Path, len(rulings), len(in.Events))
	}
	if in.Draft() != nil {
		return nil, d.drafts.Imported(&in)
	}
	return nil, d.edits.Decided(&in)
}

// Refuse notes that one event of an input would be refused, so that none of them was
// asked for. The problems that it returns stay like those that Decided returns.
func (d *Dir) Refuse(in Input, event int, r forge.Ruling) []Problem {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusals.Add(&in, in.Refused(event, r, nil))
}

// Projected returns the journal sequence up to which an intent's files are written; 0
// if some are missing or hold a person's edit, so that the intent has to be written
// again.
func (d *Dir) Projected(id forge.IntentID) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files.Projected(id)
}

// Write brings the files of an intent up to date. A file that holds a person's edit
// which was not decided yet is left alone and written by a later call. Where edits are
// not read, the person's version is kept and named as a problem, and the file is
// written.
func (d *Dir) Write(v forge.View) ([]Problem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	id := v.Intent.ID
	if _, err := forge.ParseIntentID(string(id)); err != nil {
		return nil, err
	}
	d.overview.RememberTasks(&v)
	list, err := records.Targets(&v)
	if err != nil {
		return nil, err
	}
	observations, keep, err := d.notebook.Target(id, v.Observations)
	if err != nil {
		return nil, err
	}
	if observations != nil {
		list = append(list, *observations)
	}
	problems, err := d.write(list)
	if err != nil {
		return problems, err
	}
	keep()
	if err := d.files.RemoveStale(id, list); err != nil {
		return problems, err
	}
	more, done, err := d.goals.Write(&v)
	problems = append(problems, more...)
	if err != nil {
		return problems, err
	}
	seq := v.Seq
	if !done {
		seq = 0
	}
	return problems, d.files.Done(id, seq, list)
}

// WriteState writes state.yaml after the files of the intents were written. Of a
// project's summary only whether the project is paused counts.
func (d *Dir) WriteState(summaries []forge.Summary) ([]Problem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, err := d.overview.Target(summaries)
	if err != nil {
		return nil, err
	}
	return d.write([]projection.Target{t})
}

// StateWritten reports whether state.yaml is as WriteState left it, as far as Edits
// saw.
func (d *Dir) StateWritten() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files.IsCurrent(layout.State)
}

// write puts files in place. Folders that a person removed meanwhile are made.
func (d *Dir) write(list []projection.Target) ([]Problem, error) {
	problems, err := d.files.Write(list)
	if !errors.Is(err, fs.ErrNotExist) {
		return problems, err
	}
	if err := d.renew(); err != nil {
		return problems, err
	}
	more, err := d.files.Write(list)
	return append(problems, more...), err
}
