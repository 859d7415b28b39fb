package facts

import (
	"cmp"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Once is read from an intent's journal: of which tasks the newest change
// failed to verify, or was not verified yet.
//
// It knows what workers reported, and neither stages nor candidates. A record of several events
// says of none of them which command follows from it, so what is known is forgotten there.
type Once struct {
	// failed are those whose newest change failed, before its review or in its
	// merge: what follows is verified first.
	failed map[forge.TaskID]bool
	// left are those whose newest change was left to its merge: whoever reviews it is told so.
	left map[forge.TaskID]bool
}

// Check returns an error if a change of which something bad is known is left to the merge, if
// a reviewer is not told that the change was left to it, or if such a change is said to have
// passed. Of two changes for a task the one that failed need not be the one that goes on.
func (o *Once) Check(rec *forge.Record, two bool) error {
	if o.failed == nil {
		o.failed, o.left = map[forge.TaskID]bool{}, map[forge.TaskID]bool{}
	}
	if len(rec.Events) > 1 {
		clear(o.failed)
		clear(o.left)
		return nil
	}
	o.learn(&rec.Events[0])
	if r := forge.As[*forge.Result](rec.Events[0].Message); r != nil && cmp.Or(forge.As[*forge.Rebase](r.Output), &forge.Rebase{}).Unverified {
		for i := range rec.Effects.Outbox {
			if m := forge.As[*forge.ObstacleReported](rec.Effects.Outbox[i].Message); m != nil && m.Passed != "" {
				return fmt.Errorf("%s is said to have passed, and nobody has verified it", r.Attempt)
			}
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		switch {
		case c.Attempt.Step == forge.StepRebase && c.Rebase().VerifyInMerge && o.failed[c.Attempt.Task] && !two:
			return fmt.Errorf("%s may leave its verify to the merge although it failed there", c.Attempt)
		case c.Attempt.Step == forge.StepReview && o.left[c.Attempt.Task] && !c.Review().Unverified && !c.Review().Unchanged:
			return fmt.Errorf("%s is not told that nobody has verified the change", c.Attempt)
		}
	}
	return nil
}

// learn records how a change did.
func (o *Once) learn(ev *forge.Event) {
	switch m := ev.Message.(type) {
	case *forge.Result:
		if rb := forge.As[*forge.Rebase](m.Output); rb != nil && len(rb.Conflicts) == 0 && !verdict.Asked(rb.Verify) {
			o.left[m.Attempt.Task], o.failed[m.Attempt.Task] = rb.Unverified, !rb.Unverified && verdict.Failing(rb.Verify) != ""
		}
	case *forge.MergeEnded:
		if m.Result != nil && m.Result.Outcome == forge.MergeVerifyFailed {
			o.failed[m.Task] = true
		}
		delete(o.left, m.Task)
	default:
	}
}
