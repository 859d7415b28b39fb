package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/knowledge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/reflection"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/scheduler"
)

// Project is the state machine of a project: what spans its intents. It is made of
// five parts, none of which knows another. Project hands each event to the parts
// that it is about, tells a part what it has to know of another one, and makes
// effects of what they return:
//
//	            scheduler  ledger  merge queue  knowledge  reflection
//	Enter           1         3                     5           2, 5
//	Planned         2         1                     2           2
//	End             1, 5      4, 6      4           2           3
//	Reserve, Land   1                   2
//	Withdraw        1                   2
//	Spend           1         2
//	Settle                    1
//	Result                    2         1                       1
//	TimerFired                          1
//	Pause, Cancel   1
//	Resume          1                   2
//	Reflect                                                     1
//
// The numbers say in which order they act, or are asked. After every event that
// was applied the reflection that is due is started, for which the ledger is asked.
type Project struct {
	key   forge.Key
	state projectState

	// Of the event that is being decided.
	now time.Time
	out outbox.Messages
	eff forge.Effects
}

// projectState is everything that a project remembers from one event to the next.
// It can be written as JSON and read back; see Snapshot.
type projectState struct {
	Scheduler  scheduler.State
	Queue      mergequeue.State
	Ledger     budget.Ledger
	Knowledge  knowledge.State
	Reflection reflection.State
	// Decided has the ids of what people asked, so that a redelivery is not taken
	// for another wish.
	Decided map[string]bool
	// UpdatedAt is when the newest event was applied.
	UpdatedAt time.Time
}

// NewProject returns the state machine of a project in which nothing happened yet.
func NewProject(key forge.Key) *Project { return &Project{key: key} }

// Step decides on one event; see Intent.Step. A request that comes once more is
// answered once more.
func (p *Project) Step(ev forge.Event) (forge.Effects, forge.Ruling) {
	p.now = ev.At
	decision, err := p.decide(&ev)
	if decision == forge.Applied {
		if isByPerson(&ev) {
			if p.state.Decided == nil {
				p.state.Decided = map[string]bool{}
			}
			p.state.Decided[ev.ID] = true
		}
		p.reflectIfDue()
		p.state.UpdatedAt = ev.At
	}
	r := forge.Ruling{EventID: ev.ID, Decision: decision}
	if err != nil {
		r.Reason = err.Error()
	}
	eff := p.eff
	eff.Notes = p.events(p.out)
	p.eff, p.out, p.now = forge.Effects{}, nil, time.Time{}
	return eff, r
}

func (p *Project) decide(ev *forge.Event) (forge.Decision, error) {
	if p.state.Decided[ev.ID] {
		p.state.Scheduler.Repeat(&p.out)
		return rule.Ignore("this was asked and decided already")
	}
	from := forge.IntentID(ev.Actor) // a message from an intent carries its id
	switch m := ev.Message.(type) {
	case *forge.Enter:
		return p.enter(from, m)
	case *forge.Planned:
		return p.planned(from, m)
	case *forge.End:
		return p.end(from, m)
	case *forge.Reserve:
		return p.lockFiles(from, m)
	case *forge.Land:
		return p.merge(from, m)
	case *forge.Withdraw:
		return p.withdraw(from, m)
	case *forge.Spend:
		return p.reserveBudget(from, m)
	case *forge.Settle:
		return p.state.Ledger.Commit(&p.out, from, m, p.now)
	case *forge.Result:
		if m.Attempt.Step == forge.StepReflect {
			return p.reflected(m)
		}
		return p.merged(m)
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
	}
	return rule.Refuse("the event says nothing that a lane knows")
}

// enter admits a run of an intent, or answers once more.
func (p *Project) enter(id forge.IntentID, m *forge.Enter) (forge.Decision, error) {
	d, err := p.state.Scheduler.Enter(id, m)
	if d == forge.Applied {
		p.state.Reflection.Entered(id)
		p.state.Ledger.Open(&p.out, id, p.now)
	}
	if p.state.Scheduler.IsActive(id, m.Run) {
		p.state.Scheduler.Admit(&p.out, id, p.brief)
	}
	return d, err
}

// brief fills in what an intent that is admitted is told besides what the
// scheduler knows.
func (p *Project) brief(in *scheduler.Intent, a *forge.Admitted) {
	a.Budget = p.state.Ledger.Limits
	a.Past = p.state.Knowledge.RelevantRuns(in.Title, in.Type)
	if in.Goal {
		a.Knowledge = p.state.Knowledge.ForGoal(in.Title)
	}
	if in.Type == forge.TypeSkillExtraction {
		a.Unread = p.state.Reflection.NextUnread()
	}
}

func (p *Project) planned(id forge.IntentID, m *forge.Planned) (forge.Decision, error) {
	d, err := p.state.Scheduler.Plan(id, m)
	if d == forge.Applied {
		p.state.Ledger.Limits = m.Budget
	}
	if p.state.Scheduler.IsActive(id, m.Run) {
		p.state.Scheduler.Connect(&p.out, id, m, p.brief)
	}
	return d, err
}

// end takes back everything that an intent holds and wakes those that wait for it.
func (p *Project) end(id forge.IntentID, m *forge.End) (forge.Decision, error) {
	d, err := p.state.Scheduler.End(&p.out, id, m)
	if d != forge.Applied {
		return d, err
	}
	p.state.Knowledge.Learn(m)
	p.state.Reflection.Ended(id, m)
	p.state.Scheduler.TellFamily(&p.out, id)
	p.state.Queue.Forget(id)
	p.state.Ledger.Close(&p.out, id, m.SpentUSD, p.now)
	p.state.Scheduler.Wake(&p.out, id)
	p.startNextMerge()
	return d, err
}

func (p *Project) lockFiles(id forge.IntentID, m *forge.Reserve) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return notActive(id, m.Run)
	}
	d, err := p.state.Queue.Lock(&p.out, id, m)
	p.startNextMerge()
	return d, err
}

func (p *Project) merge(id forge.IntentID, m *forge.Land) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return notActive(id, m.Run)
	}
	d, err := p.state.Queue.Merge(&p.out, id, m)
	p.startNextMerge()
	return d, err
}

func (p *Project) withdraw(id forge.IntentID, m *forge.Withdraw) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return mergequeue.NotInForce(m)
	}
	d, err := p.state.Queue.Withdraw(id, m)
	p.startNextMerge()
	return d, err
}

func (p *Project) reserveBudget(id forge.IntentID, m *forge.Spend) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return notActive(id, m.Run)
	}
	return p.state.Ledger.Reserve(&p.out, budget.Call{
		Intent: id, Number: m.Number, Attempt: m.Attempt, Limits: m.Budget, USD: m.USD, UnderWay: m.Begun,
	}, p.now)
}

func notActive(id forge.IntentID, run int) (forge.Decision, error) {
	return rule.Ignore("run %d of %q is not active", run, id)
}

func (p *Project) resumeAll() (forge.Decision, error) {
	d, err := p.state.Scheduler.ResumeAll(&p.out)
	p.startNextMerge()
	return d, err
}

// merged takes a worker's report on a merge.
func (p *Project) merged(r *forge.Result) (forge.Decision, error) {
	retryAt, d, err := p.state.Queue.Result(&p.out, r, p.now)
	if !retryAt.IsZero() {
		p.eff.Timers = append(p.eff.Timers, p.mergeTimer(p.state.Queue.Current))
	}
	p.startNextMerge()
	return d, err
}

// retryMerge issues a merge again when its time has come.
func (p *Project) retryMerge(fired *forge.TimerFired) (forge.Decision, error) {
	m := p.state.Queue.Retry(fired)
	if m == nil {
		return rule.Ignore("no timer %q is set for %s", fired.Key, fired.At)
	}
	p.eff.Commands = append(p.eff.Commands, p.mergeCommand(m))
	return forge.Applied, nil
}

func (p *Project) startNextMerge() {
	if m := p.state.Queue.StartNext(&p.out, p.state.Scheduler.Paused); m != nil {
		p.eff.Commands = append(p.eff.Commands, p.mergeCommand(m))
	}
}

// reflected takes a worker's report on a reflection.
func (p *Project) reflected(r *forge.Result) (forge.Decision, error) {
	again, d, err := p.state.Reflection.Result(&p.out, r, p.context())
	switch {
	case again != nil:
		p.eff.Commands = append(p.eff.Commands, p.reflectCommand(again))
	case d == forge.Applied:
		p.state.Ledger.ReleaseReflection(&p.out, p.now)
	}
	return d, err
}

// reflectIfDue starts a reflection if one is due and there is budget for it.
func (p *Project) reflectIfDue() {
	if !p.state.Reflection.IsDue(p.state.Scheduler.Paused) {
		return
	}
	usd, refusal, wait := p.state.Ledger.ReserveReflection(p.now)
	switch {
	case wait:
	case refusal != "":
		p.state.Reflection.Skip(&p.out, refusal, p.context())
	default:
		p.eff.Commands = append(p.eff.Commands, p.reflectCommand(p.state.Reflection.Start(usd, p.context())))
	}
}

// context returns what a reflection may know of the project.
func (p *Project) context() *reflection.Context {
	return &reflection.Context{Project: p.key.Project, Now: p.now, Intent: func(id forge.IntentID) (reflection.Intent, bool) {
		in := p.state.Scheduler.Intents[id]
		if in == nil {
			return reflection.Intent{}, false
		}
		return reflection.Intent{Run: in.Run, Status: in.Status, Generation: in.Generation, Source: in.Source}, true
	}}
}

// Pending returns every effect that has to be in force. Of the answers, only those
// are among them that may come long after the question: file locks and budget.
// Who misses another one asks again.
func (p *Project) Pending() forge.Effects {
	var e forge.Effects
	if m := p.state.Queue.Current; m != nil && m.IsPaused() {
		e.Timers = append(e.Timers, p.mergeTimer(m))
	} else if m != nil {
		e.Commands = append(e.Commands, p.mergeCommand(m))
	}
	if r := p.state.Reflection.Current; r != nil {
		e.Commands = append(e.Commands, p.reflectCommand(r))
	}
	var out outbox.Messages
	p.state.Queue.Repeat(&out)
	p.state.Ledger.Repeat(&out)
	p.state.Scheduler.Repeat(&out)
	p.state.Reflection.Repeat(&out)
	e.Notes = p.events(out)
	return e
}

// Summary returns the state as lists show it.
func (p *Project) Summary() forge.Summary {
	paused := p.state.Scheduler.Paused
	s := forge.Summary{
		Key: p.key, Settled: p.state.Queue.Current == nil && p.state.Reflection.IsIdle(paused), UpdatedAt: p.state.UpdatedAt,
	}
	if paused {
		s.Waiting, s.Activity = forge.WaitingPaused, "paused"
	}
	if r := p.state.Reflection.Current; r != nil {
		s.Activity = "reflecting on " + string(r.Runs[0].Intent)
		s.Open = append(s.Open, r.Attempt())
	}
	if m := p.state.Queue.Current; m != nil {
		s.Activity = fmt.Sprintf("integrating %s", m.Task)
		if !m.IsPaused() {
			s.Open = append(s.Open, m.Attempt())
		}
	}
	return s
}

// Active returns the intents that have not ended, by id.
func (p *Project) Active() []forge.IntentID { return slices.Clone(p.state.Scheduler.Active) }
