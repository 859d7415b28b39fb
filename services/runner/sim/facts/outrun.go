package facts

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Recipes reports whether a world is one in which people ask for changes by recipes, whose checks
// are their reviews. It follows from the seed alone, so that other worlds stay as they are.
func Recipes(seed uint64) bool { return seed%64 == 15 }

// Checked is the review of a recipe's change by its check, which fails every second time.
func Checked(c *forge.Command, chance func(n int) bool) *forge.Review {
	rv := &forge.Review{TaskID: c.Task.ID, Head: c.Task.Head, Verdict: forge.VerdictApproved, Claims: Claims(func(int) bool { return false }, c.Task.Required())}
	if chance(2) {
		rv.Verdict, rv.Issues = forge.VerdictRejected, []string{"it is not formatted"}
	}
	return rv
}

// Outrun is read from an intent's journal: whether the newest change of a
// recipe was put on a tip to which others were merged since it was made.
type Outrun struct {
	recipe bool
	// landed lists the files that were merged meanwhile, of each task.
	landed map[forge.TaskID][]string
}

// Check returns an error if a recipe is made again at once, at its own cost,
// although its check failed on what was merged meanwhile. Of several events
// that were decided together the order is not known.
func (o *Outrun) Check(rec *forge.Record) error {
	if o.landed == nil {
		o.landed = map[forge.TaskID][]string{}
	}
	var rejected forge.TaskID
	for i := range rec.Events {
		switch m := rec.Events[i].Message.(type) {
		case *forge.Submit:
			o.recipe = o.recipe || m.Intent.Recipe != ""
		case *forge.Result:
			if rb := forge.As[*forge.Rebase](m.Output); rb != nil {
				o.landed[m.Attempt.Task] = rb.Landed
			}
			if rv := forge.As[*forge.Review](m.Output); rv != nil && rv.Verdict == forge.VerdictRejected {
				rejected = m.Attempt.Task
			}
		case *forge.MergeEnded:
			if m.Result != nil && m.Result.Candidate != nil { // it was put on another tip, and goes to a review once more
				o.landed[m.Task] = m.Result.Candidate.Landed
			}
		default:
		}
	}
	if !o.recipe || rejected == "" || len(rec.Events) > 1 || len(o.landed[rejected]) == 0 {
		return nil
	}
	for i := range rec.Effects.Commands {
		if c := &rec.Effects.Commands[i]; c.Attempt.Task == rejected && c.Attempt.Step == forge.StepImplement {
			return fmt.Errorf("%s is made again at its own cost, although its check failed on what was merged meanwhile: %v", rejected, o.landed[rejected])
		}
	}
	return nil
}
