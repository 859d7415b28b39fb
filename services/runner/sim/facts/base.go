package facts

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Looks is read from the journal of a project: which intent looks whether a red base branch passes.
type Looks struct {
	number int
	by     forge.IntentID
}

// Check returns an error if two intents are asked to look at a time. A look ends
// with what its intent says of the base branch, with the end of its run, with a
// timer, or for all when the base branch passes or a person resumes them.
func (l *Looks) Check(key forge.Key, rec *forge.Record) error {
	if !key.IsProject() {
		return nil
	}
	for i := range rec.Events {
		switch m := rec.Events[i].Message.(type) {
		case *forge.ObstacleReported:
			if m.Agent == forge.GitBase && (m.Failure.Reason != forge.FailHeld || l.by != forge.IntentID(rec.Events[i].Actor)) {
				// What another one finds may open the project, and then close it again.
				l.by = ""
			}
		case *forge.RunEnded, *forge.TimerFired, *forge.Resume, *forge.Result:
			l.by = ""
		default:
		}
	}
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.ObstaclesChanged](rec.Effects.Outbox[i].Message)
		if m == nil || m.Look == 0 {
			continue
		}
		to := rec.Effects.Outbox[i].To.Intent
		if m.Look == l.number && l.by != "" && l.by != to || m.Look > l.number && l.by != "" && len(rec.Events) == 1 {
			return fmt.Errorf("%s looks whether the base branch passes, while %s does", to, l.by)
		}
		l.number, l.by = m.Look, to
	}
	return nil
}

// base is read from an intent's journal: which of its tasks may have their
// changes verified although the base branch is known to be red.
type base struct {
	looks   map[forge.TaskID]bool
	retried bool
}

// check returns an error if a change is verified while the base branch is known
// to be red, and it is not asked to look.
func (b *base) check(rec *forge.Record, red bool) error {
	if b.looks == nil {
		b.looks = map[forge.TaskID]bool{}
	}
	if len(rec.Events) > 1 {
		return nil
	}
	asked := false
	switch m := rec.Events[0].Message.(type) {
	case *forge.ObstaclesChanged:
		asked = m.Look > 0
	case *forge.Retry: // a person says so; a change that is to mend the base branch is made anew first
		b.retried = true
	case *forge.Resume: // what was about to be verified before goes on
		asked = true
	case *forge.Result: // one that failed for a reason of a replica is made again
		if _, done := m.Output.(*forge.Rebase); done {
			delete(b.looks, m.Attempt.Task)
		}
	default:
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		in, _ := c.Input.(*forge.RebaseInput)
		if c.Attempt.Step != forge.StepRebase || c.Intent.IsGoal() || in != nil && len(in.Asked) > 0 {
			continue
		}
		if red && !asked && !b.retried && !b.looks[c.Attempt.Task] {
			return fmt.Errorf("%s was issued although the base branch is known to be red", c.Attempt)
		}
		b.looks[c.Attempt.Task] = b.looks[c.Attempt.Task] || asked
	}
	return nil
}
