package facts

import (
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Pushes is read from the journal of a project: what the origin refused and accepted.
//
// It counts as the origin would: two refusals in a row say that it refuses all, as long as
// none was accepted since. Whether a refusal is a change's own it decides by what came before
// and after, and it knows nothing of the order in which the rules try changes, nor of the
// time that they wait. What was withdrawn is left out, since the rules need not try it again.
type Pushes struct {
	// live has the number of the newest request to merge of each task that
	// still wants to be merged, and of which its intent is.
	live map[forge.TaskID]asking
	// refused says of a request how many pushes had been accepted when it was refused last.
	refused map[string]int
	// own are the requests that were refused again after another was accepted.
	own      map[string]bool
	accepted int
	// round counts the refusals since the project waited, or since a push was
	// accepted. The rules may make two: of the oldest, and of another one.
	round int
}

// asking is a task's newest request to merge: its number, and the intent that asked.
type asking struct {
	intent string
	number int
}

// Check returns an error if a decision of the project fails a change for a
// refusal that may be one of all changes, if it tries one change after the other
// while the origin refuses them, or if it does not wait for a time to try again.
func (p *Pushes) Check(key forge.Key, rec *forge.Record) error {
	if !key.IsProject() {
		return nil
	}
	if p.live == nil {
		p.live, p.refused, p.own = map[forge.TaskID]asking{}, map[string]int{}, map[string]bool{}
	}
	before := p.round
	for i := range rec.Events {
		p.learn(&rec.Events[i])
	}
	if p.round > 2 {
		return fmt.Errorf("%d pushes were refused one after the other", p.round)
	}
	waits := false
	for _, t := range rec.Effects.Timers {
		waits = waits || t.Key == "push"
	}
	if p.round == 2 && before < 2 && len(rec.Events) == 1 && !waits {
		return errors.New("two pushes were refused, and no other is ever tried")
	}
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.MergeEnded](rec.Effects.Outbox[i].Message)
		if m == nil || m.Failure == nil || m.Failure.Reason != forge.FailPush || p.live[m.Task].number != m.Number {
			continue
		}
		if !p.own[request(m.Task, m.Number)] {
			return fmt.Errorf("%s failed by a refusal that may be one of all changes", m.Task)
		}
	}
	return nil
}

// learn takes an event of the project.
func (p *Pushes) learn(ev *forge.Event) {
	switch m := ev.Message.(type) {
	case *forge.QueueMerge:
		p.live[m.Task] = asking{ev.Actor, m.Number}
	case *forge.LockFiles:
		delete(p.live, m.Task)
	case *forge.WithdrawRequests:
		delete(p.live, m.Task)
	case *forge.RunEnded:
		for task, r := range p.live {
			if r.intent == ev.Actor {
				delete(p.live, task)
			}
		}
	case *forge.Resume, *forge.TimerFired:
		if t := forge.As[*forge.TimerFired](m); t == nil || t.Key == "push" {
			p.round = 0
		}
	case *forge.Result:
		p.result(m)
	default:
	}
}

// result takes the report on a push.
func (p *Pushes) result(r *forge.Result) {
	in := forge.As[*forge.MergeResult](r.Output)
	if in == nil || r.IsStart() {
		return
	}
	key := request(r.Attempt.Task, r.Attempt.Number)
	switch {
	case in.Outcome == forge.MergeDone:
		p.accepted++
		p.round = 0
	case in.Outcome == forge.MergeRefused && p.live[r.Attempt.Task].number == r.Attempt.Number:
		if at, known := p.refused[key]; known && p.accepted > at && p.round == 0 {
			p.own[key] = true // and says nothing of others
		} else {
			p.round++
		}
		p.refused[key] = p.accepted
	}
}
