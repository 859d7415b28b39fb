package target

// Commands read intents by the methods of this file, whichever kind of target they have. A target
// over NATS, or of a repository, reads the journals and folds them; a target by HTTP is told by a
// runner, which has folded them. Both return the same types, so commands need not know.
//
// Methods that are marked as by HTTP only return a document of the API. Over
// NATS each such command makes its document of the journals, in its own package.

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
)

// Decision is a record of an intent, with the intent before and after it.
type Decision struct {
	Before, After forge.Summary
	Record        *forge.Record
}

// Projects returns the state of the project; nothing before its first intent.
func (t *Target) Projects(ctx context.Context) ([]forge.Summary, error) {
	switch {
	case t.web != nil:
		list, err := t.overview(ctx, false)
		if err != nil {
			return nil, err
		}
		return list.Project, nil
	case t.Bus == nil:
		return nil, nil
	}
	return t.Bus.Journal.ProjectSummaries(ctx, t.Project)
}

// Records returns the records of an intent that there is. By HTTP they have no
// effects and no settings: they are for people, and are not folded.
func (t *Target) Records(ctx context.Context, id forge.IntentID) ([]forge.Record, error) {
	if t.web != nil {
		d, err := t.read(ctx, id)
		if err != nil {
			return nil, err
		}
		return d.records, nil
	}
	records, _, err := t.Bus.Journal.Load(ctx, t.Key(id))
	return records, err
}

// Decisions returns the records of an intent that there is, each with what it changed. The
// state after a record is folded where the records are whole. By HTTP they are not, and the
// state is the one that was journaled with the record: the runner made it by the rules of then.
func (t *Target) Decisions(ctx context.Context, id forge.IntentID) ([]Decision, error) {
	records, err := t.Records(ctx, id)
	if err != nil {
		return nil, err
	}
	list := make([]Decision, len(records))
	machine := flow.NewIntent(t.Key(id))
	var before forge.Summary
	for i := range records {
		r := &records[i]
		after := r.Summary // as it was decided
		if t.web == nil {
			for _, ev := range r.Events {
				machine.Step(rules.Of(r), ev)
			}
			after = machine.Summary()
		}
		list[i] = Decision{before, after, r}
		before = after
	}
	return list, nil
}

// Attempts returns every attempt of an intent that has ended, as it counts for the rules.
func (t *Target) Attempts(ctx context.Context, id forge.IntentID) ([]forge.StepRecord, error) {
	if t.web != nil {
		d, err := t.read(ctx, id)
		if err != nil {
			return nil, err
		}
		return d.Attempts, nil
	}
	records, err := t.Records(ctx, id)
	if err != nil {
		return nil, err
	}
	return report.Ended(t.Key(id), records), nil
}

// Finished returns the finished runs that are wanted, in no order. By HTTP it reads intents
// until there are most of them, if that is not 0, and none of the others can have a newer one.
func (t *Target) Finished(ctx context.Context, wants func(*forge.History) bool, most int) (found []forge.History, err error) {
	take := func(v *forge.View) {
		for i := range v.History {
			if h := &v.History[i]; wants(h) {
				found = append(found, *h)
			}
		}
	}
	switch {
	case t.web != nil:
		err := t.history(ctx, func(v *forge.View, rest *forge.Summary) bool {
			take(v)
			if most == 0 || rest == nil {
				return false
			}
			newer := 0
			for i := range found {
				if found[i].CreatedAt.After(rest.UpdatedAt) {
					newer++
				}
			}
			return newer > most // one more says that there are others
		})
		return found, err
	case t.Bus == nil:
		return nil, nil
	}
	views, err := local.LoadAll(ctx, t.Bus, t.Project)
	for i := range views {
		take(&views[i])
	}
	return found, err
}

// Diff returns the change of an attempt of an intent that there is.
func (t *Target) Diff(ctx context.Context, req document.DiffRequest) (document.Diff, error) {
	if t.web != nil {
		return t.web.Diff(ctx, req)
	}
	return runner.Diff(ctx, t.Bus, t.Project, req)
}

// Queue returns the merge queue of the project.
func (t *Target) Queue(ctx context.Context) (document.Queue, error) {
	switch {
	case t.web != nil:
		return t.web.Queue(ctx)
	case t.Bus == nil:
		return document.Queue{Facts: []document.Fact{}, Changes: []document.QueuedChange{}}, nil
	}
	return runner.Queue(ctx, t.Bus, t.Project)
}

// Costs returns the usage of agents, at most 200 rows and the sum of the others; by HTTP only.
func (t *Target) Costs(ctx context.Context, req document.CostsRequest) (document.Costs, error) {
	return t.web.Costs(ctx, req)
}

// Health returns how the work of some weeks went; by HTTP only.
func (t *Target) Health(ctx context.Context, weeks int) (figures.Health, error) {
	return t.web.Health(ctx, weeks)
}

// Settings returns by which settings the project is worked on; by HTTP only.
func (t *Target) Settings(ctx context.Context) (setup.InForce, error) { return t.web.Settings(ctx) }

// Timeline returns the records of an intent in words; by HTTP only.
func (t *Target) Timeline(ctx context.Context, id forge.IntentID) ([]document.Record, error) {
	return t.web.Timeline(ctx, id)
}

// Transcript returns the lines of an attempt, none if they are not kept any more; by HTTP only.
func (t *Target) Transcript(ctx context.Context, req document.TranscriptRequest) ([]document.TranscriptLine, error) {
	return t.web.Transcript(ctx, req)
}

// Observe reports to the observer what happens in an organisation's project until ctx ends.
func (t *Target) Observe(ctx context.Context, observer local.Observer) error {
	if t.web != nil {
		return t.web.Watch(ctx, observer, "", false)
	}
	return local.Observe(ctx, t.Bus, t.Project, observer)
}

// followed is how long the last look after following by HTTP may take.
const followed = 10 * time.Second

// Follow is Observe until nothing is left to do without a person, and returns
// how things stand then.
func (t *Target) Follow(ctx context.Context, only forge.IntentID, observer local.Observer) (*local.Outcome, error) {
	if t.web == nil {
		return local.Follow(ctx, t.Bus, t.Project, only, observer, t.log)
	}
	err := t.web.Watch(ctx, observer, only, true)
	o := &local.Outcome{Interrupted: ctx.Err() != nil, Joined: true}
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), followed)
	defer cancel()
	o.Intents, err = t.Summaries(ctx)
	return o, err
}
