package projects

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/budget"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/reflection"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/schedule"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/scheduler"
)

// The steps of a project hand an event to its parts, in the order of the table
// at Project. They keep nothing themselves.

// admitRun admits a run of an intent, or answers once more.
func (p *Project) admitRun(id forge.IntentID, m *forge.AdmitRun) (forge.Decision, error) {
	d, err := p.state.Scheduler.AdmitRun(id, m)
	if d == forge.Applied {
		p.state.Reflection.Entered(id)
		p.state.Schedules.Entered(id)
		p.state.Ledger.Open(&p.out, id, m.Parent, p.now)
	}
	if p.state.Scheduler.IsActive(id, m.Run) {
		p.state.Scheduler.Admit(&p.out, id, p.fillIn)
	}
	return d, err
}

// fillIn fills in the facts that an intent is told when it is admitted and that
// the scheduler does not know.
func (p *Project) fillIn(in *scheduler.Intent, a *forge.RunAdmitted) {
	a.Budget, a.ReadPolicy, a.AskFirst = p.state.Ledger.Limits, !p.state.Ledger.Known, true
	a.Obstacles = p.state.Obstacles.Message("")
	about := in.Title + "\n" + in.About
	a.Past = p.state.Knowledge.RelevantRuns(about, in.Type)
	if in.Goal {
		a.Knowledge = p.state.Knowledge.ForGoal(about)
	} else {
		a.Knowledge = p.state.Knowledge.ForOthers(about)
	}
	if in.Type == forge.TypeSkillExtraction {
		a.Unread = p.state.Reflection.NextUnread()
	}
}

// planned keeps a plan, or answers once more. The budget counts before children
// are told of it.
func (p *Project) planned(id forge.IntentID, m *forge.RunPlanned) (forge.Decision, error) {
	d, err := p.state.Scheduler.RunPlanned(id, m)
	if d == forge.Applied {
		p.state.Ledger.Planned(id, m)
	}
	if p.state.Scheduler.IsActive(id, m.Run) {
		p.state.Scheduler.Connect(&p.out, id, m, p.fillIn)
	}
	return d, err
}

// end takes back everything that an intent holds and wakes those that wait for it.
func (p *Project) end(id forge.IntentID, m *forge.RunEnded) (forge.Decision, error) {
	d, err := p.state.Scheduler.RunEnded(&p.out, id, m)
	if d != forge.Applied {
		return d, err
	}
	p.state.Knowledge.Learn(m)
	p.state.Reflection.Ended(id, m)
	p.state.Scheduler.SendToFamily(&p.out, id, p.fillIn)
	p.state.Obstacles.Ended(&p.out, id, p.state.Scheduler.Active)
	p.state.Queue.Forget(id, m.Status == forge.StatusDone)
	p.state.Reflection.Submit(&p.out, p.state.Queue.Repairs.Ended(id, p.key.Project, p.now))
	p.state.Ledger.Close(&p.out, id, m.SpentUSD, m.Unbilled, p.now)
	p.state.Scheduler.Wake(&p.out, id)
	p.startNextMerge()
	return d, err
}

// lockFiles asks for the lock on files for a task of an active run.
func (p *Project) lockFiles(id forge.IntentID, m *forge.LockFiles) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return notActive(id, m.Run)
	}
	d, err := p.state.Queue.Lock(&p.out, id, m)
	p.startNextMerge()
	return d, err
}

// merge queues a change of a task of an active run.
func (p *Project) merge(id forge.IntentID, m *forge.QueueMerge) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return notActive(id, m.Run)
	}
	d, err := p.state.Queue.Merge(&p.out, id, m)
	p.startNextMerge()
	return d, err
}

// withdraw takes back the requests of a task of an active run.
func (p *Project) withdraw(id forge.IntentID, m *forge.WithdrawRequests) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return mergequeue.NotInForce(m)
	}
	d, err := p.state.Queue.Withdraw(id, m)
	p.startNextMerge()
	return d, err
}

// reserveBudget asks for budget for one call of an active run.
func (p *Project) reserveBudget(id forge.IntentID, m *forge.ReserveBudget) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return notActive(id, m.Run)
	}
	return p.state.Ledger.Reserve(&p.out, budget.Call{
		Intent: id, Number: m.Number, Attempt: m.Attempt, Limits: m.Budget, OwnUSD: m.OwnUSD, USD: m.USD, UnderWay: m.Begun,
	}, p.now)
}

// notActive is the decision on a message of a run that is over, or never began.
func notActive(id forge.IntentID, run int) (forge.Decision, error) {
	return rule.Ignore("run %d of %q is not active", run, id)
}

// met keeps which obstacle an active run met.
func (p *Project) met(id forge.IntentID, m *forge.ObstacleReported) (forge.Decision, error) {
	if !p.state.Scheduler.IsActive(id, m.Run) {
		return notActive(id, m.Run)
	}
	return p.state.Obstacles.Refused(&p.out, id, m, p.state.Scheduler.Active, p.now)
}

// resumeAll ends the pause of the project, opens the accounts that refuse
// calls, and starts the next merge.
func (p *Project) resumeAll() (forge.Decision, error) {
	// A person who resumes everything means both: what they paused, and what stopped by itself.
	opened := p.state.Obstacles.Resume(&p.out, p.state.Scheduler.Active, p.now)
	d, err := p.state.Scheduler.ResumeAll(&p.out)
	if opened {
		p.state.Queue.Reopen()
		d, err = forge.Applied, nil
	}
	p.startNextMerge()
	return d, err
}

// merged takes a worker's report on a merge, and sets a timer if it is to be tried
// again.
func (p *Project) merged(r *forge.Result) (forge.Decision, error) {
	// It is not an attempt that failed: it neither counts against the tries of
	// the merge, nor gives its place to another.
	if f := r.Failure(); f != nil && f.Reason == forge.FailOrigin && p.state.Queue.Stop(r) {
		p.state.Obstacles.Lost(&p.out, r.To.Intent, f, p.state.Scheduler.Active, p.now)
		return forge.Applied, nil
	}
	retryAt, d, err := p.state.Queue.Result(&p.out, p.state.DecidedBy, r, p.now)
	if in := forge.As[*forge.MergeResult](r.Output); d == forge.Applied && in != nil && in.Outcome == forge.MergeDone {
		p.state.Obstacles.Merged(&p.out, p.state.Scheduler.Active)
		p.state.Queue.Red = ""
		p.state.Reflection.Submit(&p.out, p.state.Queue.Repairs.Merged(p.state.DecidedBy, r, p.state.Scheduler.IsPart, p.now))
	}
	if !retryAt.IsZero() {
		p.eff.Timers = append(p.eff.Timers, p.state.Queue.Timers(p.key)...)
	}
	p.startNextMerge()
	return d, err
}

// pulls returns the rules about pull requests.
func (p *Project) pulls() mergequeue.Pulls { return mergequeue.Pulls{State: &p.state.Queue} }

// commands makes those of the queue.
func (p *Project) commands() mergequeue.Commands {
	return mergequeue.Commands{State: &p.state.Queue, Project: p.key.Project, By: p.state.DecidedBy}
}

// looked takes a gateway's report on a pull request, and sets a timer if
// something is to be tried again.
func (p *Project) looked(r *forge.Result) (forge.Decision, error) {
	before := p.state.Queue.Timers(p.key)
	d, err := p.pulls().Looked(&p.out, p.state.DecidedBy, r, p.now)
	for _, t := range p.state.Queue.Timers(p.key) {
		if !slices.Contains(before, t) {
			p.eff.Timers = append(p.eff.Timers, t)
		}
	}
	return d, err
}

// probe issues a probe of an origin that does not answer, unless one is under
// way. It is called after each decision, because many of them can be the reason:
// a report, the end of a probe, the end of the intent in whose name it was.
func (p *Project) probe() {
	var after forge.IntentID
	if m := p.state.Queue.Current; m != nil && m.Stopped {
		after = m.Intent
	}
	if p.state.Obstacles.Away.Begin(&p.out, &p.state.Obstacles, after, p.state.Scheduler.Active) {
		p.eff.Commands = append(p.eff.Commands, *p.state.Obstacles.Away.Command(p.key))
	}
	p.goOn()
}

// look has an intent look whether a red base branch passes, if it is time, and
// has the merges wait that cannot pass. It is called after each decision, as
// probe is, with the timer that was set before that.
func (p *Project) look(set *forge.Timer) {
	p.await(p.state.Obstacles.Look(&p.out, p.key, p.state.Scheduler.Active, p.state.Scheduler.Paused, p.now), set)
	p.state.Queue.Red = p.state.Obstacles.RedBase()
}

// goOn issues the merge again that stopped because the origin did not answer, if it does by now.
func (p *Project) goOn() {
	if p.state.Obstacles.OriginAway() {
		return
	}
	if m := p.state.Queue.GoOn(); m != nil {
		p.eff.Commands = append(p.eff.Commands, p.commands().Merge(m))
	}
}

// probed takes a worker's report on whether the origin answers.
func (p *Project) probed(r *forge.Result) (forge.Decision, error) {
	return p.state.Obstacles.Probed(&p.out, r, p.state.Scheduler.Active, p.now)
}

// await sets a timer unless it was set before the decision.
func (p *Project) await(t, set *forge.Timer) {
	if t != nil && (set == nil || !set.At.Equal(t.At)) {
		p.eff.Timers = append(p.eff.Timers, *t)
	}
}

// calendar lets schedules look at the project.
func (p *Project) calendar() *schedule.Project {
	s := &p.state.Scheduler
	return &schedule.Project{ID: p.key.Project, Paused: s.Paused, Now: p.now, Open: s.IsOpen, Known: s.IsKnown}
}

// retryMerge issues a merge again when its time has come, or the next one if
// the origin refused pushes until now.
func (p *Project) retryMerge(fired *forge.TimerFired) (forge.Decision, error) {
	if p.state.Obstacles.NextLook(p.state.DecidedBy, fired) {
		return forge.Applied, nil
	}
	if schedule.IsTimer(fired) {
		return p.state.Schedules.Fire(&p.out, fired, p.calendar())
	}
	if p.state.Queue.NextRound(fired) || p.pulls().TryAgain(fired) {
		p.startNextMerge()
		return forge.Applied, nil
	}
	m := p.state.Queue.Retry(fired)
	if m == nil {
		return rule.Ignore("no timer %q is set for %s", fired.Key, fired.At)
	}
	p.eff.Commands = append(p.eff.Commands, p.commands().Merge(m))
	return forge.Applied, nil
}

// startNextMerge issues the next merge, if none is under way and the project is not
// paused.
func (p *Project) startNextMerge() {
	open, set := p.pulls().Advance(&p.out, p.state.DecidedBy, p.key, p.now)
	p.eff.Timers = append(p.eff.Timers, set...)
	for _, q := range open {
		p.eff.Commands = append(p.eff.Commands, p.commands().Open(q))
	}
	if m := p.state.Queue.StartNext(&p.out, p.state.Scheduler.Paused || p.state.Obstacles.OriginAway()); m != nil {
		p.eff.Commands = append(p.eff.Commands, p.commands().Merge(m))
	}
}

// couple has the changes that wait for their merge tried meanwhile, and cancels trials
// that stand for nothing any more. A change whose trial was waited for is merged then:
// it may have been taken out of the train, and nothing else would begin its merge.
func (p *Project) couple() {
	stuck := p.state.Obstacles.OriginAway() || p.state.Queue.Refused.Stands()
	issue, cancel := p.state.Queue.Couple(p.state.DecidedBy, p.state.Scheduler.Paused || stuck)
	p.eff.Cancels = append(p.eff.Cancels, cancel...)
	p.startNextMerge()
	for _, q := range issue {
		p.eff.Commands = append(p.eff.Commands, p.commands().Trial(q))
	}
}

// reflected takes a worker's report on a reflection. Its reservation is released
// when no further attempt is made.
func (p *Project) reflected(r *forge.Result) (forge.Decision, error) {
	again, d, err := p.state.Reflection.Result(&p.out, r, p.context())
	switch {
	case again != nil:
		p.eff.Commands = append(p.eff.Commands, again.Command(p.key.Project))
	case d == forge.Applied:
		p.state.Ledger.ReleaseReflection(&p.out, p.now)
	}
	return d, err
}

// reflectIfDue starts a reflection if one is due and there is budget for it.
func (p *Project) reflectIfDue() {
	for p.state.Reflection.IsDue(p.state.Scheduler.Paused || p.state.Obstacles.Blocks()) {
		usd, refusal, own, wait := p.state.Ledger.ReserveReflection(p.state.Reflection.Payer(), p.now)
		switch {
		case wait:
			return
		case refusal != "":
			p.state.Reflection.Skip(&p.out, refusal, !own, p.context())
		default:
			p.eff.Commands = append(p.eff.Commands, p.state.Reflection.Start(usd, p.context()).Command(p.key.Project))
		}
	}
}

// context lets a reflection look at the project.
func (p *Project) context() *reflection.Context {
	return &reflection.Context{Project: p.key.Project, Now: p.now, Intent: func(id forge.IntentID) (reflection.Intent, bool) {
		in := p.state.Scheduler.Intents[id]
		if in == nil {
			return reflection.Intent{}, false
		}
		return reflection.Intent{Run: in.Run, Status: in.Status, Generation: in.Generation, Source: in.Source, Requesters: in.Requesters}, true
	}}
}
