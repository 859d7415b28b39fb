package sim

import (
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
)

// checker compares a world with the invariants of the flow: the promises of
// docs/ARCHITECTURE.md that concern decisions. It reads journals and the base
// branch, and never a machine's state, which might be wrong in the same way.
type checker struct{ *world }

// check returns the first invariant that does not hold at the end of a run.
func (w checker) check() error {
	for _, check := range []func() error{
		w.checkEnded, w.checkReplay, w.checkDecidedOnce, w.checkCommits, w.checkMeasured, w.checkPairs, w.checkBest, w.checkAsked, w.checkMoney, w.checkBounds,
		w.checkPulls,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// ruledLast returns the version of the rules that decided last about a machine.
func (w checker) ruledLast(key forge.Key) rules.Version {
	records := w.journal[key]
	return rules.Of(&records[len(records)-1])
}

// knowsQuota reports whether an intent was told last that an account has reached its quota.
func (w checker) knowsQuota(key forge.Key) (known bool) {
	for _, rec := range w.journal[key] {
		for i := range rec.Events {
			if m, ok := rec.Events[i].Message.(*forge.ObstaclesChanged); ok {
				known = slices.ContainsFunc(m.Closed, func(c forge.Obstacle) bool { return !c.Until.IsZero() })
			}
		}
	}
	return known
}

// checkEnded returns an error unless every accepted intent has ended or waits
// for a person, with a reason, and nothing is left open. Without outsiders it
// also refuses tasks that lost to other tasks for good: file locks have to
// prevent that.
func (w checker) checkEnded() error {
	for _, key := range w.intents() {
		id, s := key.Intent, w.summary(key)
		switch {
		case len(w.journal[key]) == 0:
			return fmt.Errorf("%s was submitted and is not known", id)
		case !s.Idle || len(s.Open) > 0:
			return fmt.Errorf("%s never settles: %s", id, w.state())
		case s.Waiting == forge.WaitingBase && !w.ruledLast(key).Has(rules.PausedLook):
			continue // a person paused it, and older rules do not say so
		case !s.Status.Ended() && !w.ruledLast(key).Has(rules.TimedHolds) && w.knowsQuota(key):
			continue // its credentials were refused, and older rules do not end the wait with that of the quota
		case !s.Status.Ended():
			return fmt.Errorf("%s neither ended nor waits for a person: %s", id, w.state())
		case s.Status.Failed() && s.Reason == "":
			return fmt.Errorf("%s is %s without a reason", id, s.Status)
		}
		if g := s.Goal; g != nil {
			if err := facts.CheckGoal(g, s.Status); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
		view := w.view(key)
		if err := facts.CheckTasks(view, w.journal[key]); err != nil {
			return err
		}
		if err := facts.CheckBlocked(w.journal[key], w.intents(), w.summary); err != nil {
			return err
		}
		if err := w.checkLost(view); err != nil {
			return err
		}
	}
	project := w.summary(forge.Key{Project: project})
	if !project.Idle || len(project.Open) > 0 {
		return fmt.Errorf("the project never settles: %s", w.state())
	}
	return nil
}

// checkLost returns an error if an intent lost a conflict to its siblings.
// Whoever merges a pull request is an outsider, too.
func (w checker) checkLost(view *forge.View) error {
	if w.people.outsiders || w.outside != nil {
		return nil
	}
	for _, h := range view.History {
		if h.Outcome == forge.OutcomeEscalated {
			return fmt.Errorf("%s lost to its siblings: %s", view.Intent.ID, h.FailureReason)
		}
	}
	return nil
}

// intents returns the keys of the intents that people submitted, then of those
// that followed from them.
func (w checker) intents() []forge.Key {
	var keys []forge.Key
	for _, id := range w.people.ids {
		keys = append(keys, forge.Key{Project: project, Intent: id})
	}
	for _, key := range w.keys {
		if !key.IsProject() && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// checkReplay returns an error unless folding each journal gives the effects
// and summaries that were recorded: machines depend on nothing but their
// events. It takes a third of a run, so only every second seed does it.
func (w checker) checkReplay() error {
	if w.seed%2 == 1 {
		return nil
	}
	for _, key := range w.keys {
		m := machine.New(key)
		for n, rec := range w.journal[key] {
			var eff forge.Effects
			for _, ev := range rec.Events {
				e, ruling := m.Step(rules.Of(&rec), ev)
				if ruling.Decision != forge.Applied {
					return fmt.Errorf("replaying %s, record %d is %s: %s", key, n, ruling.Decision, ruling.Reason)
				}
				machine.Merge(&eff, e)
			}
			if !reflect.DeepEqual(eff, rec.Effects) || !reflect.DeepEqual(m.Summary(), rec.Summary) {
				return fmt.Errorf("replaying %s, record %d differs", key, n)
			}
		}
		if again := machine.Fold(key, w.journal[key]); again.Rules() != m.Rules() || again.Summary().UpdatedAt != m.Summary().UpdatedAt {
			return fmt.Errorf("a fold of %s goes by other rules than its records", key)
		}
	}
	return nil
}

// checkDecidedOnce returns an error if an attempt of a step was decided on
// twice, whatever workers repeat and however late it comes.
func (w checker) checkDecidedOnce() error {
	seen := map[string]bool{}
	for _, key := range w.keys {
		open := map[forge.Attempt]bool{}
		for _, rec := range w.journal[key] {
			for _, c := range rec.Effects.Commands {
				open[c.Attempt] = true
			}
			for _, ev := range rec.Events {
				r := forge.As[*forge.Result](ev.Message)
				if r == nil || r.IsStart() {
					continue
				}
				id := facts.DecisionOn(r, open)
				if id == "" {
					continue
				}
				id = key.String() + "/" + id
				if seen[id] {
					return fmt.Errorf("attempt %s was decided twice", id)
				}
				seen[id] = true
			}
			for _, a := range rec.Effects.Cancels {
				delete(open, a)
			}
		}
	}
	return nil
}

// checkCommits returns an error unless each of our commits on the base branch
// has exactly one merge, was approved, and was verified on its parent. Commits
// that outsiders pushed are only parents.
func (w checker) checkCommits() error {
	merges, approved := reported(w.world)
	merged := map[forge.TaskID]bool{}
	for i, c := range w.repo.Main {
		if c.Task == "" {
			continue
		}
		switch {
		case c.Parent != w.repo.Main[i-1].ID:
			return fmt.Errorf("commit %s is not on its parent", c.ID)
		case merges[c.ID] != 1:
			return fmt.Errorf("commit %s of %s has %d merges", c.ID, c.Task, merges[c.ID])
		case !approved[c.Patch]:
			return fmt.Errorf("commit %s of %s was not approved", c.ID, c.Task)
		case !c.Unproven && w.workers.verified[c.ID] != c.Parent && !w.workers.train.passed[[2]string{w.repo.Content(c.Parent), w.repo.Content(c.ID)}]:
			return fmt.Errorf("commit %s of %s was not verified on its parent", c.ID, c.Task)
		case merged[c.Task]:
			return fmt.Errorf("task %s merged twice", c.Task)
		}
		merged[c.Task] = true
	}
	return nil
}

// reported returns how often each commit was merged, and which patches a review
// or a judgment approved, by the results in the journals.
func reported(w *world) (merges map[string]int, approved map[string]bool) {
	merges, approved = map[string]int{}, map[string]bool{}
	for r := range results(w) {
		switch out := r.Output.(type) {
		case *forge.MergeResult:
			if facts.Merged(out) {
				merges[out.Commit]++
			}
		case *forge.Review:
			requirements := w.workers.asked[reviewed{out.TaskID, out.Head}]
			if out.Verdict == forge.VerdictApproved && !w.askedFirst(r) && len(out.Issues) == 0 && facts.Shown(requirements, out.Claims) {
				approved[w.repo.Heads[out.Head].Patch] = true
			}
		case *forge.Judgment:
			if reached(out, w.workers.asked[reviewed{r.Attempt.Task, out.Head}]) {
				approved[w.repo.Heads[out.Head].Patch] = true
			}
		default:
		}
	}
	return merges, approved
}

// results yields every result in the journals.
func results(w *world) iter.Seq[*forge.Result] {
	return func(yield func(*forge.Result) bool) {
		for _, key := range w.keys {
			for _, rec := range w.journal[key] {
				for _, ev := range rec.Events {
					if r := forge.As[*forge.Result](ev.Message); r != nil && !yield(r) {
						return
					}
				}
			}
		}
	}
}

// checkBounds returns an error if a task was implemented more often than
// retries allow, or has two commands at once. Each retry or resumption by a
// person allows as many attempts again.
func (w checker) checkBounds() error {
	p := forge.DefaultPolicy()
	most := (max(p.MaxReviewRetries+1, maxIterations) + 3) * (p.MaxAgentRetries + 1) * 2
	for _, key := range w.keys {
		runs := 1
		made := map[forge.TaskID]int{}
		for _, rec := range w.journal[key] {
			for _, ev := range rec.Events {
				if forge.As[*forge.Retry](ev.Message) != nil || forge.As[*forge.Resume](ev.Message) != nil || forge.As[*forge.RequestChanges](ev.Message) != nil {
					runs++
				}
			}
			for _, c := range rec.Effects.Commands {
				if c.Attempt.Step == forge.StepImplement || c.Attempt.Step == forge.StepExecute {
					made[c.Attempt.Task]++
				}
			}
			if twice := facts.OpenTwice(rec.Summary.Open); twice != "" {
				return fmt.Errorf("%s has two commands at once", twice)
			}
		}
		for t, n := range made {
			if n > most*runs {
				return fmt.Errorf("task %s was implemented %d times in %d runs", t, n, runs)
			}
		}
	}
	return nil
}
