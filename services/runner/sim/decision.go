package sim

import (
	"fmt"
	"maps"

	"github.com/pfl-forge/pfl-forge"
)

// checkDecision holds a decision against what was known when it was taken: what
// needs a person's approval, another intent or another task is not begun before.
func (w *world) checkDecision(key forge.Key, rec *forge.Record) error {
	if key.IsLane() {
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
	if err := know.isStill(key, rec); err != nil {
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
	switch {
	case ev.Pause != nil && ev.Pause.Task == "":
		if k.pauses = max(k.pauses, ev.Pause.Number); ev.Pause.Number == 0 {
			k.paused = true
		}
	case ev.Resume != nil && ev.Resume.Task == "":
		if k.resume = max(k.resume, ev.Resume.Number); ev.Resume.Number == 0 {
			k.paused = false
		}
	case ev.Admitted != nil:
		k.pauses, k.resume = max(k.pauses, ev.Admitted.Paused), max(k.resume, ev.Admitted.Resumed)
	case ev.Retry != nil:
		k.paused = false
	}
}

// isStill: while an intent is paused nothing of it is begun.
func (k *knowledge) isStill(key forge.Key, rec *forge.Record) error {
	if !k.paused && k.pauses <= k.resume || len(rec.Events) > 1 {
		return nil
	}
	for _, c := range rec.Effects.Commands {
		if !c.PolicyOnly {
			return fmt.Errorf("%s is paused, and %s was issued", key, c.Attempt)
		}
	}
	return nil
}

func (k *knowledge) learn(key forge.Key, ev *forge.Event) error {
	k.learnPause(ev)
	switch {
	case ev.Submit != nil:
		k.system = ev.Submit.Intent.Source == forge.SourceSystem && !ev.Submit.Vouched
		k.declaredRisk = ev.Submit.Intent.Risk
		k.risky = k.declaredRisk.Rank() > forge.RiskLow.Rank()
		for _, d := range ev.Submit.Intent.DependsOn {
			k.declared[d] = true
		}
	case ev.Approve != nil:
		if p := ev.Approve.Plan; p != "" && p != k.plan {
			return fmt.Errorf("%s: plan %q was approved, but it is %q", key, p, k.plan)
		}
		k.approved = true
	case ev.Landed != nil && ev.Landed.Result != nil && ev.Landed.Result.Outcome == forge.LandIntegrated:
		k.done[ev.Landed.Task] = true
	case ev.Result != nil && !k.withdrawn[ev.Result.Attempt]: // otherwise it only tells its costs
		k.learnResult(ev.Result)
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
	switch {
	case r.Analysis != nil && r.Analysis.Risk != "":
		judged(r.Analysis.Risk, r.Analysis.DependsOn)
	case r.Intake != nil && r.Intake.Risk != "":
		judged(r.Intake.Risk, nil)
	case r.Implementation != nil && r.Implementation.Unchanged:
		k.done[r.Attempt.Task] = true
	}
}
