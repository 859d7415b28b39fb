package report

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// Ended returns every attempt of an intent that has ended, in that order, with what it used.
// The journal is folded, so that an attempt is there exactly if it counts for the rules. The
// outcome of one that was not wanted any more when it ended, and cost something, is "unwanted".
func Ended(key forge.Key, records []forge.Record) []forge.StepRecord {
	f := ending{machine: flow.NewIntent(key)}
	for i := range records {
		for j := range records[i].Events {
			f.event(rules.Of(&records[i]), &records[i].Events[j])
		}
	}
	return f.ended
}

// ending is a journal that is being read for its attempts.
type ending struct {
	machine *flow.Intent
	ended   []forge.StepRecord
}

// event applies an event, and takes the attempt that ended with it. One that is
// reported twice, or too late and cost nothing, is none. Whether it counts is seen by
// the sums of the machine before and after: there is no second rule for that here.
func (f *ending) event(by rules.Version, ev *forge.Event) {
	before := f.machine.Summary()
	f.machine.Step(by, *ev)
	after := f.machine.Summary()
	counted := after.Usage != before.Usage
	switch m := ev.Message.(type) {
	case *forge.RunReflected: // the result is the project's
		if counted {
			f.add(ev.At, m.Step)
		}
	case *forge.Result:
		wanted := before.Wants(m.Attempt)
		if m.IsStart() || !wanted && !counted {
			return
		}
		s := forge.StepRecord{
			Step: m.Attempt.Step, TaskID: m.Attempt.Task, Attempt: m.Attempt.Number, Duration: m.Duration, Session: m.Session, Agent: m.Agent,
			Model: m.Model, Executor: m.Executor, Usage: m.Usage, Outcome: Outcome(m),
		}
		if !wanted {
			s.Outcome = "unwanted"
		}
		f.add(ev.At, s)
	default:
	}
}

// add adds an attempt that ended.
func (f *ending) add(at time.Time, s forge.StepRecord) {
	s.At = at
	f.ended = append(f.ended, s)
}
