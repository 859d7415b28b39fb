package facts

import (
	"cmp"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Train is read from the journal of a project: which changes stopped when they were tried last.
//
// It knows requests by their task and number, and nothing of the cars that the rules keep. A claim
// does not matter: a request that is tried anew has not stopped until that trial says so.
type Train struct {
	// stopped are the requests whose newest trial stopped.
	stopped map[string]bool
}

// Check returns an error if a decision of the project puts a change on top of one that stopped, or has something
// tried although the project is paused.
func (t *Train) Check(rec *forge.Record) error {
	if t.stopped == nil {
		t.stopped = map[string]bool{}
	}
	for i := range rec.Events {
		r := *cmp.Or(forge.As[*forge.Result](rec.Events[i].Message), &forge.Result{})
		in := *cmp.Or(forge.As[*forge.MergeResult](r.Output), &forge.MergeResult{})
		if f := in.Candidate; in.Outcome == forge.MergeTried && f != nil && (len(f.Conflicts) > 0 || verdict.Failing(f.Verify) != "") {
			t.stopped[fmt.Sprint(r.Attempt.Task, r.Attempt.Number)] = true
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		in := c.Merge()
		if in.Trial && rec.Summary.Waiting == forge.WaitingPaused {
			return fmt.Errorf("%s is tried although the project is paused", c.Attempt)
		}
		if in.Trial {
			delete(t.stopped, fmt.Sprint(c.Attempt.Task, c.Attempt.Number))
		}
		for j := range in.Ahead {
			if a := &in.Ahead[j]; t.stopped[fmt.Sprint(a.Task, a.Number)] {
				return fmt.Errorf("%s is tried on top of %s, which has stopped", c.Attempt, a.Task)
			}
		}
	}
	return nil
}
