package sim

import (
	"errors"
	"fmt"
	"maps"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/origins"
)

// checkDecision returns an error if a decision begins something too early,
// given what the journal says up to it: before a person's approval, before a
// dependency is done, before another task is done, or while the intent is
// paused. It is called for every record as it is written, because some of this
// cannot be seen at the end any more.
func (w checker) checkDecision(key forge.Key, rec *forge.Record) error {
	err := errors.Join(origins.Check(key, rec), w.origin.Check(key, rec), w.origin.Turns.Check(key, rec), w.looks.Check(key, rec), w.money.whole.Check(rec))
	if err != nil {
		return err
	}
	if key.IsProject() {
		return errors.Join(w.outside.Check(rec), w.workers.train.Check(rec))
	}
	know := w.known[key]
	if know == nil {
		know = &knowledge{
			declared: map[forge.IntentID]bool{}, done: map[forge.TaskID]bool{}, claimed: map[forge.TaskID]string{},
			withdrawn: map[forge.Attempt]bool{}, consent: facts.NewConsent(),
		}
		w.known[key] = know
	}
	for i := range rec.Events {
		if err := know.learn(key, &rec.Events[i]); err != nil {
			return err
		}
		if err := know.consent.Learn(&rec.Events[i], w.money.approvals); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	know.plan, know.consent.Executing = rec.Summary.Plan, rec.Summary.Status == forge.StatusExecuting
	err = errors.Join(know.consent.Check(rec, w.money.consent()), w.checkReserved(rec), w.wishes.Check(rec, w.money.protected, w.money.approvals.Count))
	if err != nil {
		return err
	}
	two := w.money.best.When != nil
	err = errors.Join(know.checkPaused(key, rec), facts.CheckBlame(rec, two), know.once.Check(rec, two), know.accounts.Check(key, rec, facts.CallsAgent),
		know.replicas.Check(rec, two), know.outrun.Check(rec))
	if err := errors.Join(err, w.outside.Said(rec), w.publishers.Check(rec)); err != nil {
		return err
	}
	for _, a := range rec.Effects.Cancels {
		know.withdrawn[a] = true
	}
	for _, c := range rec.Effects.Commands {
		if c.Attempt.Step != forge.StepImplement && c.Attempt.Step != forge.StepExecute {
			continue
		}
		if n := know.consent.Plans(); (know.system || know.risky) && n < w.money.approvals.Count {
			return fmt.Errorf("%s was implemented with approvals of %d people, and takes %d", c.Task.ID, n, w.money.approvals.Count)
		}
		for d := range know.depends {
			if s := w.summary(forge.Key{Project: project, Intent: d}); s.Status != forge.StatusDone {
				return fmt.Errorf("%s was implemented although %s is %q", c.Task.ID, d, s.Status)
			}
		}
		for _, d := range c.Task.DependsOn {
			if !know.done[d] {
				return fmt.Errorf("%s was implemented before %s was done", c.Task.ID, d)
			}
		}
	}
	return nil
}

// knowledge is read from an intent's journal without the rules of flow, so that
// it can contradict them.
type knowledge struct {
	submitted    bool                    // the intent is known
	system       bool                    // the intent was proposed by pfl-forge, and not approved in advance
	risky        bool                    // the plan needs an approval because of its risk
	consent      *facts.Consent          // of those who approved
	declaredRisk forge.Risk              // the risk that the intent was submitted with
	plan         string                  // the id of the present plan
	declared     map[forge.IntentID]bool // the dependencies that the intent was submitted with
	depends      map[forge.IntentID]bool // declared, and those that the last analysis found
	done         map[forge.TaskID]bool   // the tasks that are merged, or need no change
	claimed      map[forge.TaskID]string // the commits of tasks that are said to be done already, to be reviewed
	withdrawn    map[forge.Attempt]bool  // attempts whose results do not count any more
	accounts     facts.Accounts          // those that refuse calls
	once         facts.Once              // of changes whose verify commands were left to the merge
	replicas     facts.Replicas          // of steps that wait for one that can do them
	outrun       facts.Outrun            // of recipes whose check fails on what was merged meanwhile
	paused       bool                    // a person paused this intent
	// pauses and resume are the highest numbers of the project's pauses and
	// resumptions that reached the intent.
	pauses, resume int
}

// learnPause records pauses and resumptions of the whole intent; those of single
// tasks are left out.
func (k *knowledge) learnPause(ev *forge.Event) {
	switch m := ev.Message.(type) {
	case *forge.Pause:
		if m.Task != "" {
			return
		}
		if k.pauses = max(k.pauses, m.Number); m.Number == 0 {
			k.paused = true
		}
	case *forge.Resume:
		if m.Task != "" {
			return
		}
		if k.resume = max(k.resume, m.Number); m.Number == 0 {
			k.paused = false
		}
	case *forge.RunAdmitted:
		k.pauses, k.resume = max(k.pauses, m.Paused), max(k.resume, m.Resumed)
	case *forge.Retry:
		k.paused = false
	default:
	}
}

// checkPaused returns an error if a command was issued while the intent is paused.
// Reading the policy is allowed.
func (k *knowledge) checkPaused(key forge.Key, rec *forge.Record) error {
	if !k.paused && k.pauses <= k.resume || len(rec.Events) > 1 {
		return nil
	}
	for _, c := range rec.Effects.Commands {
		if !c.Analyze().PolicyOnly {
			return fmt.Errorf("%s is paused, and %s was issued", key, c.Attempt)
		}
	}
	return nil
}

// learn records an event of the intent's journal. It returns an error for an approval
// of a plan that is not the present one.
func (k *knowledge) learn(key forge.Key, ev *forge.Event) error {
	k.learnPause(ev)
	k.accounts.Learn(ev)
	switch m := ev.Message.(type) {
	case *forge.Submit:
		if k.submitted { // what its publisher says later changes nothing
			return nil
		}
		k.submitted = true
		k.system = m.Intent.Source == forge.SourceSystem && !m.Preapproved
		k.declaredRisk = m.Intent.Risk
		k.risky = k.declaredRisk.Rank() > forge.RiskLow.Rank()
		for _, d := range m.Intent.DependsOn {
			k.declared[d] = true
		}
	case *forge.Approve:
		if p := m.Plan; p != "" && p != k.plan {
			return fmt.Errorf("%s: plan %q was approved, but it is %q", key, p, k.plan)
		}
	case *forge.MergeEnded:
		if m.Result != nil && m.Result.Outcome == forge.MergeDone {
			k.done[m.Task] = true
		}
	case *forge.Result:
		if !k.withdrawn[m.Attempt] { // otherwise it only tells its costs
			k.learnResult(m)
		}
	default:
	}
	return nil
}

// learnResult records a plan's risk and dependencies, and tasks that need no change.
func (k *knowledge) learnResult(r *forge.Result) {
	judged := func(risk forge.Risk, after []forge.IntentID) {
		k.risky = forge.MaxRisk(risk, k.declaredRisk).Rank() > forge.RiskLow.Rank()
		k.depends = maps.Clone(k.declared)
		for _, d := range after {
			k.depends[d] = true
		}
	}
	switch out := r.Output.(type) {
	case *forge.Analysis:
		if out.Risk != "" {
			judged(out.Risk, out.DependsOn)
		}
	case *forge.Intake:
		if out.Risk != "" {
			judged(out.Risk, nil)
		}
	case *forge.Implementation:
		if out.Unchanged && out.Blocked == nil {
			k.done[r.Attempt.Task] = true
		}
		k.claimed[r.Attempt.Task] = ""
		if out.NothingToDo != "" && out.Commits == 0 {
			k.claimed[r.Attempt.Task] = out.Head
		}
	case *forge.Rebase:
		if k.claimed[r.Attempt.Task] != "" && out.Head == out.Base { // the same, on a later tip
			k.claimed[r.Attempt.Task] = out.Head
		}
	case *forge.Review:
		if out.Verdict == forge.VerdictApproved && out.Head != "" && out.Head == k.claimed[r.Attempt.Task] {
			k.done[r.Attempt.Task] = true
		}
	default:
	}
}
