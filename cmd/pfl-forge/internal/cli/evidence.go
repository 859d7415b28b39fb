package cli

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
)

// evidence is what the journal says of a task's last change.
type evidence struct {
	Files  []string // that it touches
	Verify *forge.VerifyReport
}

// evidence returns what is known of the changes of an intent's tasks.
func (t *target) evidence(ctx context.Context, id forge.IntentID) (map[forge.TaskID]*evidence, error) {
	records, _, err := t.bus.Load(ctx, t.key(id))
	if err != nil {
		return nil, err
	}
	return evidenceOf(records), nil
}

func evidenceOf(records []forge.Record) map[forge.TaskID]*evidence {
	all := map[forge.TaskID]*evidence{}
	of := func(id forge.TaskID) *evidence {
		if all[id] == nil {
			all[id] = new(evidence)
		}
		return all[id]
	}
	for i := range records {
		for j := range records[i].Events {
			ev := &records[i].Events[j]
			switch {
			case ev.Result != nil && ev.Result.Implementation != nil:
				*of(ev.Result.Attempt.Task) = evidence{Files: ev.Result.Implementation.Files}
			case ev.Result != nil && ev.Result.Rebase != nil:
				of(ev.Result.Attempt.Task).rebased(ev.Result.Rebase)
			case ev.Landed != nil && ev.Landed.Result != nil && ev.Landed.Result.Candidate != nil:
				of(ev.Landed.Task).rebased(ev.Landed.Result.Candidate)
			}
		}
	}
	return all
}

func (e *evidence) rebased(r *forge.Rebase) {
	if len(r.Files) > 0 {
		e.Files = r.Files
	}
	e.Verify = r.Verify
}
