package pending

import (
	"context"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// evidence are the facts that the journal has about a task's last change.
type evidence struct {
	Files  []string // that it touches
	Verify *forge.VerifyReport
	// Unverified says that it is left to the merge.
	Unverified bool
}

// Checks returns the commands that ran on the newest change of each task of an intent.
func Checks(ctx context.Context, t *target.Target, id forge.IntentID) (map[forge.TaskID][]forge.CheckRun, error) {
	all, err := readEvidence(ctx, t, id)
	if err != nil {
		return nil, err
	}
	runs := map[forge.TaskID][]forge.CheckRun{}
	for task, e := range all {
		if e.Verify != nil {
			runs[task] = e.Verify.Runs
			if e.Verify.Proof != nil {
				runs[task] = append(slices.Clip(runs[task]), *e.Verify.Proof)
			}
		}
	}
	return runs, nil
}

// readEvidence returns the evidence about the tasks of an intent.
func readEvidence(ctx context.Context, t *target.Target, id forge.IntentID) (map[forge.TaskID]*evidence, error) {
	records, err := t.Records(ctx, id)
	if err != nil {
		return nil, err
	}
	return evidenceOf(records), nil
}

// evidenceOf returns for each task of an intent the files and the verification of its newest
// change, for a person who decides on it. The records are in their order.
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
			switch m := ev.Message.(type) {
			case *forge.Result:
				of := func() *evidence { return of(m.Attempt.Task) }
				switch out := m.Output.(type) {
				case *forge.Implementation:
					if len(out.Files) > 0 { // an attempt that changed nothing leaves the change as it was
						*of() = evidence{Files: out.Files}
					}
				case *forge.Rebase:
					of().rebased(out)
				default:
				}
			case *forge.MergeEnded:
				if m.Result != nil && m.Result.Candidate != nil {
					of(m.Task).rebased(m.Result.Candidate)
				}
			default:
			}
		}
	}
	return all
}

// rebased takes a report about the change. What a reviewer's checks found is no verify of it.
func (e *evidence) rebased(r *forge.Rebase) {
	if verdict.Asked(r.Verify) {
		return
	}
	if len(r.Files) > 0 {
		e.Files = r.Files
	}
	e.Verify, e.Unverified = r.Verify, r.Unverified
}
