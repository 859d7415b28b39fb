package sim

import (
	"fmt"
	"maps"

	"github.com/pfl-forge/pfl-forge"
)

// checkDecision holds a decision against what was known when it was taken: what
// needs a person's approval, another intent or another task is not begun before.
func (w *world) checkDecision(key forge.Key, rec *forge.Record) error {
	if key.IsProject() {
		return nil
	}
	know := w.known[key]
	if know == nil {
		know = &knowledge{declared: map[forge.IntentID]bool{}, done: map[forge.TaskID]bool{}, withdrawn: map[forge.Attempt]bool{}}
		w.known[key] = know
	}
	for i := range rec.Events {
		if err := know.learn(key, &rec.Events[i]); err != nil {
			return err
		}
	}
	know.plan = rec.Summary.Plan
	if err := know.checkPaused(key, rec); err != nil {
		return err
	}
	for _, a := range rec.Effects.Cancels {
		know.withdrawn[a] = true
	}
	for _, c := range rec.Effects.Commands {
		if c.Attempt.Step != forge.StepImplement && c.Attempt.Step != forge.StepExecute {
			continue
		}
		if (know.system || know.risky) && !know.approved {
			return fmt.Errorf("%s was implemented without approval", c.Task.ID)
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

// knowledge is what an intent's journal says, read without the rules of flow.
type knowledge struct {
	system   bool
	risky    bool
	approved bool

	declaredRisk forge.Risk
	plan         string
	declared     map[forge.IntentID]bool // dependencies that came with it
	depends      map[forge.IntentID]bool // and those that the last analysis found
	done         map[forge.TaskID]bool

	withdrawn map[forge.Attempt]bool // nobody waits for them

	paused         bool // by a person
	pauses, resume int  // of the project
}

// learnPause notes what is paused.
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

// isStill: while an intent is paused nothing of it is begun.
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

func (k *knowledge) learn(key forge.Key, ev *forge.Event) error {
	k.learnPause(ev)
	switch m := ev.Message.(type) {
	case *forge.Submit:
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
		k.approved = true
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

// learnResult notes how risky a plan is and what it waits for.
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
		if out.Unchanged {
			k.done[r.Attempt.Task] = true
		}
	default:
	}
}
