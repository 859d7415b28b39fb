package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/control"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/knowledge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/obstacle"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/reflection"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/schedule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/scheduler"
)

// Project is the state machine of a project: what spans its intents. It is made of
// seven parts, none of which knows another. Project hands each event to the parts
// that it is about, tells a part what it has to know of another one, and makes
// effects of what they return:
//
//	                  first       then
//	AdmitRun          scheduler   reflection, schedules, ledger, scheduler (asks ledger, knowledge, reflection)
//	RunPlanned        scheduler   ledger, scheduler (asks ledger, knowledge, reflection)
//	RunEnded          scheduler   knowledge, reflection, scheduler, queue, ledger, scheduler, queue
//	LockFiles         queue       if the scheduler says that the run is active
//	QueueMerge        queue       the same
//	WithdrawRequests  queue       the same
//	ReserveBudget     ledger      the same
//	CommitBudget      ledger
//	ObstacleReported  obstacles   if the scheduler says that the run is active
//	Result            obstacles   of a probe; queue
//	Result            queue       of a merge, or of what became of a pull request
//	Result            reflection  of a reflection (asks scheduler); ledger when it has ended
//	TimerFired        obstacles   of a look at a red base branch; schedules; queue
//	Pause             scheduler
//	Resume            obstacles   scheduler, queue
//	Cancel            scheduler
//	Reflect           reflection
//	Teach             knowledge
//	SetSchedules      schedules
//	PauseSchedule     schedules
//
// After an event that can let a merge start, the queue starts the next one. After
// every event that was applied, the queue has those behind it tried, and the reflection that is due is started if the
// ledger has budget for it.
type Project struct {
	key   forge.Key
	state projectState

	// now is when the event happened that is being decided; zero between events.
	now time.Time
	// out are the messages that its parts send because of it, in order.
	out outbox.Messages
	// eff are the other effects.
	eff forge.Effects
}

// projectState is everything that a project remembers from one event to the next. It can be written as JSON and read back; see Snapshot.
type projectState struct {
	// Stamp says when the newest event was applied, and by which rules.
	rule.Stamp

	// Scheduler knows the intents: who is active, who waits for whom.
	Scheduler scheduler.State
	// Queue orders the merges and gives the file locks.
	Queue mergequeue.State
	// Ledger accounts for the budgets that intents share.
	Ledger budget.Ledger
	// Obstacles are those that are known.
	Obstacles obstacle.State
	// Knowledge keeps the lessons of finished runs.
	Knowledge knowledge.State
	// Reflection keeps observations and proposals.
	Reflection reflection.State
	// Schedules submit intents at their times.
	Schedules schedule.State
	// Decided has the ids of the events that people sent, so that a redelivery is not taken for another act.
	Decided map[string]bool
}

// NewProject returns the state machine of a project in which nothing happened yet.
func NewProject(key forge.Key) *Project { return &Project{key: key} }

// Rules returns the version of the rules that the newest event was applied by.
func (p *Project) Rules() rules.Version { return p.state.DecidedBy }

// Step decides on one event; see Intent.Step. A request that comes once more is answered once more.
func (p *Project) Step(by rules.Version, ev forge.Event) (forge.Effects, forge.Ruling) {
	p.now = ev.At
	last := p.state.Stamp
	p.state.DecidedBy = by
	timer, due := p.state.Obstacles.LookTimer(p.key), p.state.Schedules.Timer(p.key)
	decision, err := p.decide(&ev)
	if decision == forge.Applied {
		if control.Personal(&ev) {
			if p.state.Decided == nil {
				p.state.Decided = map[string]bool{}
			}
			p.state.Decided[ev.ID] = true
		}
		p.probe()
		p.look(timer)
		p.await(p.state.Schedules.Timer(p.key), due)
		p.couple()
		p.state.Obstacles.Pushes(&p.out, p.state.Queue.Closed(), p.state.Queue.First(), p.state.Scheduler.Active)
		p.reflectIfDue()
	}
	if p.state.UpdatedAt = ev.At; decision != forge.Applied {
		p.state.Stamp = last
	}
	eff := p.eff
	eff.Outbox = p.out.Events(p.key.Project)
	p.eff, p.out, p.now = forge.Effects{}, nil, time.Time{}
	return eff, rule.Ruling(p.key, &ev, decision, err)
}

// decide hands an event to the step for its message. Unless it returns Applied, the state is as it was.
func (p *Project) decide(ev *forge.Event) (forge.Decision, error) {
	if p.state.Decided[ev.ID] {
		p.state.Scheduler.Repeat(&p.out)
		p.state.Obstacles.Repeat(&p.out, p.state.Scheduler.Active)
		return rule.Ignore("this was asked and decided already")
	}
	from := forge.IntentID(ev.Actor) // a message from an intent carries its id
	switch m := ev.Message.(type) {
	case *forge.AdmitRun:
		return p.admitRun(from, m)
	case *forge.RunPlanned:
		return p.planned(from, m)
	case *forge.RunEnded:
		return p.end(from, m)
	case *forge.LockFiles:
		return p.lockFiles(from, m)
	case *forge.QueueMerge:
		return p.merge(from, m)
	case *forge.WithdrawRequests:
		return p.withdraw(from, m)
	case *forge.ReserveBudget:
		return p.reserveBudget(from, m)
	case *forge.ObstacleReported:
		return p.met(from, m)
	case *forge.CommitBudget:
		return p.state.Ledger.Commit(&p.out, from, m, p.now)
	case *forge.Result:
		return p.reported(m)
	case *forge.TimerFired:
		return p.retryMerge(m)
	case *forge.Pause:
		return p.state.Scheduler.PauseAll(&p.out)
	case *forge.Resume:
		return p.resumeAll()
	case *forge.Cancel:
		return p.state.Scheduler.CancelAll(&p.out, m.Reason)
	case *forge.Reflect:
		return p.state.Reflection.Request()
	case *forge.Teach:
		return p.state.Knowledge.Teach(ev.Actor, m, p.now)
	case *forge.SetSchedules, *forge.PauseSchedule:
		return p.state.Schedules.Decide(p.state.DecidedBy, ev, p.calendar())
	case *forge.Submit, *forge.Edit, *forge.Approve, *forge.RequestChanges, *forge.Reject, *forge.Answer, *forge.Retry,
		*forge.OverlapChanged, *forge.RunAdmitted, *forge.DependencyEnded, *forge.FilesLocked, *forge.MergeEnded, *forge.BudgetReserved,
		*forge.ChildChanged, *forge.RunReflected, *forge.ObstaclesChanged:
		// Those are for intents.
	}
	return rule.Refuse("the event has no message that a project takes")
}

// reported takes a worker's report to the part that it is about.
func (p *Project) reported(m *forge.Result) (forge.Decision, error) {
	switch m.Attempt.Step {
	case forge.StepReflect:
		return p.reflected(m)
	case forge.StepProbe:
		return p.probed(m)
	case forge.StepOpenPull, forge.StepMergePull:
		return p.looked(m)
	default:
		return p.merged(m)
	}
}

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

// Knows returns every piece of knowledge, the oldest first; about a text, the most relevant first, as intents are told them.
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
