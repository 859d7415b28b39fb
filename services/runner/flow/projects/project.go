// Package projects holds the state machine of a project, which decides what
// spans intents: who is admitted, whose change is merged next, who holds which
// files, what money is left, what is known and what is reflected on.
//
// Project is a composition like flow.Intent. It hands each event to the small
// machines that the event is about and makes effects of what they return; steps.go
// has a function for each event. It knows intents by their messages alone.
package projects

import (
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
// After an event that can let a merge start, the queue starts the next one.
// After every event that was applied, the queue has those behind it tried, and
// the reflection that is due is started if the ledger has budget for it.
type Project struct {
	key   forge.Key
	state state

	// now is when the event happened that is being decided; zero between events.
	now time.Time
	// out are the messages that its parts send because of it, in order.
	out outbox.Messages
	// eff are the other effects.
	eff forge.Effects
}

// state is everything that a project remembers from one event to the next. It
// can be written as JSON and read back; see Snapshot.
type state struct {
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
	// Decided has the ids of the events that people sent, so that a redelivery
	// is not taken for another act.
	Decided map[string]bool
}

// New returns the state machine of a project in which nothing happened yet.
func New(key forge.Key) *Project { return &Project{key: key} }

// Rules returns the version of the rules that the newest event was applied by.
func (p *Project) Rules() rules.Version { return p.state.DecidedBy }

// Step decides on one event; see flow.Intent.Step. A request that comes once
// more is answered once more.
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

// decide hands an event to the step for its message. Unless it returns Applied,
// the state is as it was.
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
