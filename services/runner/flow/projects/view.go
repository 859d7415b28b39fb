package projects

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// Pending returns every effect that has to be in force. Of the answers, only those
// are among them that may come long after the question: file locks and budget.
// Who misses another one asks again.
func (p *Project) Pending() forge.Effects {
	var e forge.Effects
	if m := p.state.Queue.Current; m != nil && !m.IsPaused() { // one that stopped goes on when the origin answers
		e.Commands = append(e.Commands, p.commands().Merge(m))
	}
	e.Timers = p.state.Queue.Timers(p.key)
	if t := p.state.Obstacles.LookTimer(p.key); t != nil {
		e.Timers = append(e.Timers, *t)
	}
	if t := p.state.Schedules.Timer(p.key); t != nil {
		e.Timers = append(e.Timers, *t)
	}
	for _, q := range p.state.Queue.Trials() {
		e.Commands = append(e.Commands, p.commands().Trial(q))
	}
	for _, q := range p.pulls().Opening() {
		e.Commands = append(e.Commands, p.commands().Open(q))
	}
	if r := p.state.Reflection.Current; r != nil {
		e.Commands = append(e.Commands, r.Command(p.key.Project))
	}
	if c := p.state.Obstacles.Away.Command(p.key); c != nil {
		e.Commands = append(e.Commands, *c)
	}
	var out outbox.Messages
	p.state.Queue.Repeat(&out)
	p.state.Ledger.Repeat(&out)
	p.state.Scheduler.Repeat(&out)
	p.state.Obstacles.Repeat(&out, p.state.Scheduler.Active)
	p.state.Reflection.Repeat(&out)
	p.state.Schedules.Repeat(&out)
	e.Outbox = out.Events(p.key.Project)
	return e
}

// Summary returns the state as lists show it.
func (p *Project) Summary() forge.Summary {
	paused := p.state.Scheduler.Paused
	s := forge.Summary{
		Key: p.key, RunSummary: forge.RunSummary{
			Idle: p.pulls().IsIdle() && p.state.Obstacles.Away.For == "" &&
				p.state.Reflection.IsIdle(paused || p.state.Obstacles.Blocks()),
		}, UpdatedAt: p.state.UpdatedAt, Project: p.shared(),
	}
	if paused {
		s.Waiting, s.Activity = forge.WaitingPaused, "paused"
	}
	if r := p.state.Reflection.Current; r != nil {
		s.Activity = "reflecting on " + string(r.Runs[0].Intent)
		s.Open = append(s.Open, r.Attempt())
	}
	if c := p.state.Obstacles.Away.Command(p.key); c != nil {
		s.Open = append(s.Open, c.Attempt)
	}
	if m := p.state.Queue.Current; m != nil {
		s.Activity = fmt.Sprintf("merging %s", m.Task)
		if !m.IsPaused() {
			s.Open = append(s.Open, m.Attempt())
		}
	}
	s.Open = append(s.Open, p.pulls().Beside()...)
	return s
}

// shared returns the length of the merge queue, and the account of the budgets.
func (p *Project) shared() *forge.ProjectSummary {
	queue, ledger := &p.state.Queue, &p.state.Ledger
	merges := len(queue.Queued) + len(queue.Proposed)
	if queue.Current != nil {
		merges++
	}
	return &forge.ProjectSummary{
		Merges: merges, Limits: ledger.Limits, SpentUSD: ledger.SpentUSD, TodayUSD: ledger.TodayUSD, Day: ledger.Day,
		Closed: p.state.Obstacles.Closed, Queue: queue.Places(), Schedules: p.state.Schedules.Summaries(),
	}
}

// Knows returns every piece of knowledge, the oldest first; about a text, the
// most relevant first, as intents are told them.
func (p *Project) Knows(about string) []forge.Knowledge {
	if about == "" {
		return slices.Clone(p.state.Knowledge.Known)
	}
	return p.state.Knowledge.About(about)
}

// Line returns the changes of the merge queue, in the order of their merges.
func (p *Project) Line() mergequeue.Line { return mergequeue.LineOf(&p.state.Queue) }

// Active returns the intents that have not ended, by id.
func (p *Project) Active() []forge.IntentID { return slices.Clone(p.state.Scheduler.Active) }
