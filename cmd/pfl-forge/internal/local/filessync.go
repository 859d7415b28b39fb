package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nuid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// rulingTimeout bounds how long a runner may take to decide on an event of a file.
const rulingTimeout = 10 * time.Second

// filesSync turns a person's files into events and decisions into files. It is not
// safe for concurrent use.
type filesSync struct {
	files *forgedir.Dir
	bus   *bus.Bus
	repo  *Repository
	log   *slog.Logger
	// branch has the recipes that drafts may name; empty: they are not checked.
	branch git.Branch
	// view returns the present view of an intent.
	view func(context.Context, forge.IntentID) (forge.View, bool)
	// found are the problems of each kind of file when it was last read.
	found problems
}

// openFilesSync opens the .forge folder, with the problems that other processes
// found.
func openFilesSync(b *bus.Bus, repo *Repository, log *slog.Logger) (*filesSync, error) {
	files, err := forgedir.Open(repo.Root, forgedir.Options{Project: repo.Project, Actor: repo.Actor, Log: log})
	if err != nil {
		return nil, err
	}
	d := &filesSync{files: files, bus: b, repo: repo, log: log, found: repo.knownProblems()}
	d.view = func(ctx context.Context, id forge.IntentID) (forge.View, bool) {
		v, err := runner.View(ctx, b, d.key(id))
		return v, err == nil
	}
	return d, nil
}

// close closes the .forge folder, so that another process may open it.
func (d *filesSync) close() {
	if err := d.files.Close(); err != nil {
		d.log.Warn("cannot close the .forge folder", "error", err)
	}
}

// key returns the key of an intent of this repository.
func (d *filesSync) key(id forge.IntentID) forge.Key {
	return forge.Key{Project: d.repo.Project, Intent: id}
}

// edits submits a person's changes to the files of intents, and returns how
// many files that were. The problems that it finds replace those of the call
// before.
func (d *filesSync) edits(ctx context.Context) (int, error) {
	inputs, found, err := d.files.Edits(ctx, func(id forge.IntentID) (forge.View, bool) { return d.view(ctx, id) })
	if err != nil {
		return 0, err
	}
	inputs, foreign, err := d.repo.ofPerson(ctx, inputs)
	if err != nil {
		return 0, err
	}
	found = append(found, foreign...)
	for _, in := range inputs {
		refused, err := d.submit(ctx, in)
		if err != nil {
			return 0, err
		}
		found = append(found, refused...)
	}
	d.found.edits = found
	return len(inputs), d.writeProblems()
}

// drafts submits the drafts that are complete, and returns how many were
// accepted. known returns the existing intents with their dependencies.
// Problems replace those of the call before.
func (d *filesSync) drafts(ctx context.Context, known func() map[forge.IntentID][]forge.IntentID) (int, error) {
	inputs, found, err := d.files.Drafts(ctx)
	if err != nil {
		return 0, err
	}
	inputs, foreign, err := d.repo.ofPerson(ctx, inputs)
	if err != nil {
		return 0, err
	}
	found = append(found, foreign...)
	if len(inputs) > 0 {
		var wrong, more []forgedir.Problem
		inputs, wrong = d.withNames(ctx, inputs)
		inputs, more = drafts.CheckDependencies(inputs, known())
		found = slices.Concat(found, wrong, more)
	}
	submitted := 0
	for _, in := range inputs {
		refused, err := d.submit(ctx, in)
		if err != nil {
			return submitted, err
		}
		if len(refused) == 0 {
			submitted++
		}
		found = append(found, refused...)
	}
	d.found.drafts = found
	return submitted, d.writeProblems()
}

// submit sends the events of a file to be decided: all of them, or none if one
// would be refused. It returns the problems. Several events are rehearsed
// first, as each is decided on its own.
func (d *filesSync) submit(ctx context.Context, in forgedir.Input) ([]forgedir.Problem, error) {
	if len(in.Events) > 1 {
		n, refusal, err := d.rehearse(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Path, err)
		}
		if refusal != nil {
			return d.files.Refuse(in, n, *refusal), nil
		}
		in.Events = in.Events[:n]
	}
	rulings := make([]forge.Ruling, 0, len(in.Events))
	for _, ev := range in.Events {
		r, err := d.decide(ctx, ev)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Path, err)
		}
		rulings = append(rulings, r)
		if r.Decision == forge.Refused {
			break
		}
	}
	return d.files.Decided(in, rulings)
}

// rehearse applies the events of a file to a copy of the intent. It returns how many
// of them are needed, or which one is refused, and why.
func (d *filesSync) rehearse(ctx context.Context, in forgedir.Input) (int, *forge.Ruling, error) {
	key := d.key(in.Intent)
	records, _, err := d.bus.Journal.Load(ctx, key)
	if err != nil {
		return 0, nil, err
	}
	m := machine.Fold(key, records)
	for i, ev := range in.Events {
		ev.At = time.Now()
		_, r := m.Step(m.Rules(), ev)
		if r.Decision != forge.Refused {
			continue
		}
		if s := m.Summary().Status; forge.As[*forge.Approve](ev.Message) != nil && i > 0 && (s == forge.StatusExecuting || s == forge.StatusDone) {
			return i, nil, nil // with the risk that the person set it goes on by itself
		}
		return i, &r, nil
	}
	return len(in.Events), nil, nil
}

// decide returns the ruling on an event. If a process sent it before, and ended
// before the ruling, it is sent again under another id: the rules know from their
// state what they did already.
func (d *filesSync) decide(ctx context.Context, ev forge.Event) (forge.Ruling, error) {
	ctx, cancel := context.WithTimeout(ctx, rulingTimeout)
	defer cancel()
	r, err := d.bus.Submissions.Ask(ctx, ev)
	if errors.Is(err, requests.ErrNoRuling) && ctx.Err() == nil {
		ev.ID += "/" + nuid.Next()
		r, err = d.bus.Submissions.Ask(ctx, ev)
	}
	return r, err
}

// write updates the files of one intent. A file that a person changed meanwhile
// is left as it is.
func (d *filesSync) write(v *forge.View) error {
	found, err := d.files.Write(*v)
	if err != nil {
		return fmt.Errorf("files of %s: %w", v.Intent.ID, err)
	}
	if len(found) > 0 {
		d.found.record(v.Intent.ID, found)
	}
	return nil
}

// writeState writes state.yaml from the summaries of intents and projects.
func (d *filesSync) writeState(all []forge.Summary) error {
	found, err := d.files.WriteState(all)
	d.found.state = found
	return errors.Join(err, d.writeProblems())
}

// writeSince updates the files of intents that changed since a time, and those
// that a person removed or changed, and then state.yaml.
func (d *filesSync) writeSince(ctx context.Context, since time.Time) error {
	all, err := d.bus.Journal.Summaries(ctx, d.repo.Project)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.UpdatedAt.Before(since) && d.files.Projected(s.Key.Intent) != 0 {
			continue
		}
		v, ok := d.view(ctx, s.Key.Intent)
		if !ok {
			continue
		}
		if err := d.write(&v); err != nil {
			return err
		}
	}
	projects, err := d.bus.Journal.ProjectSummaries(ctx, d.repo.Project)
	if err != nil {
		return err
	}
	return errors.Join(d.writeState(append(all, projects...)), d.rememberProject(ctx))
}

// rememberProject stores how far the project's journal is, so that a store that
// has less is noticed.
func (d *filesSync) rememberProject(ctx context.Context) error {
	head, err := d.bus.Journal.Last(ctx, forge.Key{Project: d.repo.Project})
	if err != nil {
		return err
	}
	return d.files.RememberProject(head.Seq)
}
