package flow

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/reflection"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
)

// isByPerson reports whether an event is a person's, or another system's, wish.
func isByPerson(ev *forge.Event) bool {
	return forge.As[*forge.Reflect](ev.Message) != nil || forge.As[*forge.Teach](ev.Message) != nil || personal(ev)
}

// events returns messages to intents as events. It returns nil if there are none.
func (p *Project) events(out outbox.Messages) []forge.Event {
	if len(out) == 0 {
		return nil
	}
	list := make([]forge.Event, len(out))
	for i, m := range out {
		list[i] = forge.Event{ID: "project/" + m.ID, To: forge.Key{Project: p.key.Project, Intent: m.Intent}, Message: m.Message}
	}
	return list
}

// mergeCommand tells a worker to merge.
func (p *Project) mergeCommand(m *mergequeue.Merge) forge.Command {
	c := forge.Command{To: forge.Key{Project: p.key.Project, Intent: m.Intent}, Attempt: m.Attempt()}
	if m.Press {
		_, c.Input = p.state.Queue.OpenAttempt(&m.Request)
		return c
	}
	found, in := m.Finding()
	c.Input = &forge.MergeInput{Change: m.Change, Tried: found, In: in, Landed: m.Landing}
	return c
}

// openCommand tells a gateway to open the pull request of a change, or to bring it up to date.
func (p *Project) openCommand(q *mergequeue.Request) forge.Command {
	attempt, in := p.state.Queue.OpenAttempt(q)
	return forge.Command{To: forge.Key{Project: p.key.Project, Intent: q.Intent}, Attempt: attempt, Input: in}
}

// trialCommand tells a worker to try a merge.
func (p *Project) trialCommand(q *mergequeue.Request) forge.Command {
	return forge.Command{
		To: forge.Key{Project: p.key.Project, Intent: q.Intent}, Attempt: q.Attempt(),
		Input: &forge.MergeInput{Change: q.Change, Trial: true, Ahead: p.state.Queue.Ahead(q)},
	}
}

// reflectCommand tells a worker to reflect. It is a command of the first run's
// intent.
func (p *Project) reflectCommand(r *reflection.Reflection) forge.Command {
	first := r.Runs[0]
	in := &forge.ReflectInput{History: &first.On.History, Observations: r.Observations, Proposed: r.Known}
	for _, run := range r.Runs[1:] {
		in.Histories = append(in.Histories, run.On.History)
	}
	c := forge.Command{
		To:            forge.Key{Project: p.key.Project, Intent: first.Intent},
		Attempt:       r.Attempt(),
		Intent:        first.On.Intent,
		Input:         in,
		BudgetUSD:     r.BudgetUSD,
		LimitedAgents: r.Avoid,
	}
	if first.On.Intent.Recipe == "" {
		c.Session = session.NewID(c.To, first.On.Intent.CreatedAt, "", forge.StepReflect, r.Number)
	}
	return c
}
