package facts

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Turns is read from the journal of a project: whose merge was begun, and which
// the base branch has overtaken.
//
// It knows requests in the order in which they were asked for, and not how
// often the rules have which patience.
type Turns struct {
	// waiting are the requests that were not answered, the oldest first.
	waiting []*turn
	// lockers are the tasks that asked for a file lock. While there is one, the
	// oldest may have to wait.
	lockers map[forge.TaskID]string
	// Most is the largest number of times that one change was overtaken.
	Most int
}

// turn is a request to merge.
type turn struct {
	task   forge.TaskID
	number int
	intent string
	// moves counts how often it was overtaken.
	moves int
	// others counts the merges of others that were begun since its own was,
	// while it was the oldest.
	others int
}

// Check returns an error if a decision of the project fails a change, or has it
// wait for a time, because the base branch moved while it was verified, or if
// it lets others go before the oldest again and again.
func (t *Turns) Check(key forge.Key, rec *forge.Record) error {
	if !key.IsProject() {
		return nil
	}
	var overtaken *turn
	for i := range rec.Events {
		overtaken = t.learn(&rec.Events[i])
	}
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.MergeEnded](rec.Effects.Outbox[i].Message)
		if m == nil {
			continue
		}
		if overtaken != nil && len(rec.Events) == 1 && m.Failure != nil && m.Task == overtaken.task {
			return fmt.Errorf("%s failed because the base branch moved: %s", m.Task, m.Failure.Message)
		}
		t.drop(func(o *turn) bool { return o.task == m.Task && o.number <= m.Number })
	}
	for _, timer := range rec.Effects.Timers {
		if overtaken != nil && len(rec.Events) == 1 && timer.Key == "merge/"+string(overtaken.task) {
			return fmt.Errorf("%s waits because the base branch moved", overtaken.task)
		}
	}
	return t.begun(rec)
}

// begun takes the merges that a decision begins. Trials do not count: they merge nothing, so they
// take no turn from anyone.
func (t *Turns) begun(rec *forge.Record) error {
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		if c.Attempt.Step != forge.StepMerge || c.Merge().Trial || len(t.waiting) == 0 {
			continue
		}
		switch oldest := t.waiting[0]; {
		case len(t.lockers) > 0 || c.Attempt.Task == oldest.task:
			oldest.others = 0
		case oldest.moves > 0:
			oldest.others++
			if oldest.others > 1 {
				return fmt.Errorf("%d others were tried since %s, the oldest, was overtaken", oldest.others, oldest.task)
			}
		}
	}
	return nil
}

// learn takes an event of the project, and returns the request that it says was overtaken.
func (t *Turns) learn(ev *forge.Event) *turn {
	if t.lockers == nil {
		t.lockers = map[forge.TaskID]string{}
	}
	switch m := ev.Message.(type) {
	case *forge.QueueMerge:
		for _, o := range t.waiting {
			if o.task == m.Task && o.number >= m.Number {
				return nil
			}
		}
		t.drop(func(o *turn) bool { return o.task == m.Task })
		t.waiting = append(t.waiting, &turn{task: m.Task, number: m.Number, intent: ev.Actor})
	case *forge.LockFiles:
		t.lockers[m.Task] = ev.Actor
		t.drop(func(o *turn) bool { return o.task == m.Task })
	case *forge.WithdrawRequests:
		delete(t.lockers, m.Task)
		t.drop(func(o *turn) bool { return o.task == m.Task })
	case *forge.RunEnded:
		for task, intent := range t.lockers {
			if intent == ev.Actor {
				delete(t.lockers, task)
			}
		}
		t.drop(func(o *turn) bool { return o.intent == ev.Actor })
	case *forge.Result:
		return t.result(m)
	default:
	}
	return nil
}

// result takes the report on a merge.
func (t *Turns) result(r *forge.Result) *turn {
	in := forge.As[*forge.MergeResult](r.Output)
	if in == nil || r.IsStart() {
		return nil
	}
	if in.Outcome == forge.MergeDone {
		delete(t.lockers, r.Attempt.Task)
	}
	for _, o := range t.waiting {
		if o.task == r.Attempt.Task && o.number == r.Attempt.Number && in.Outcome == forge.MergeOvertaken {
			o.moves++
			t.Most = max(t.Most, o.moves)
			return o
		}
	}
	return nil
}

// drop forgets requests. The one that is the oldest then begins to count.
func (t *Turns) drop(which func(*turn) bool) {
	var kept []*turn
	for _, o := range t.waiting {
		if !which(o) {
			kept = append(kept, o)
		}
	}
	t.waiting = kept
}
