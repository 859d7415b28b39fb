package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// measured are the criteria of a goal that commands decide, as the simulated tree has them.
type measured struct {
	// wanted are those of each intent that has some, by the texts of its criteria.
	wanted map[forge.IntentID][]string
	// met has the commits on which each of them was met.
	met map[string][]string
}

// criteria gives an intent criteria: two that a judge decides, or one of them
// or both decided by a command.
func (w *world) criteria(in *forge.Intent) {
	in.Criteria = []string{"one", "two"}
	for i := range w.rng.IntN(3) { // the last one first, so that numbers of a judge differ from those of the goal
		c := forge.Check{Criterion: 2 - i, Name: fmt.Sprintf("check%d", 2-i)}
		in.Criteria[c.Criterion-1] = c.Text()
		in.Checks = slices.Insert(in.Checks, 0, c)
		w.workers.wanted[in.ID] = append(w.workers.wanted[in.ID], c.Text())
	}
}

// texts returns the criteria that an intake answers: those that no command
// decides, or now and then all of them, or one more.
func (w worker) texts(in *forge.Intent) []string {
	texts, _ := verdict.Texts(in.Criteria, in.Checks)
	switch {
	case len(in.Checks) == 0:
	case w.chance(8):
		return in.Criteria
	case w.chance(8) && len(texts) == 0:
		return []string{"three"}
	}
	return texts
}

// check runs checks on a commit that verified, well or badly: now and then one
// fails, is left out, or is reported of another commit.
func (w worker) check(rb *forge.Rebase, checks []forge.Check) {
	if !rb.Verify.Passed {
		return
	}
	for _, c := range checks {
		run := forge.CheckRun{ID: verdict.RunID(&c), Name: c.Name, Command: "make " + c.Name, Tree: rb.Tree, Passed: true}
		// Only what passed on this commit is noted as met, whatever a run says of itself.
		switch {
		case w.chance(6):
			run.Passed, run.ExitCode, run.Output = false, 1, "it broke"
		case w.chance(12):
			run.Tree = "tree-of-another"
		case w.chance(20):
			continue
		default:
			w.workers.met[rb.Head] = append(w.workers.met[rb.Head], c.Text())
		}
		rb.Verify.Checks = append(rb.Verify.Checks, run)
	}
}

// passed reports whether checks passed on a commit. A worker that merges goes by what
// it ran itself: no report of another commit, and none that is left out, deceives it.
func (m *measured) passed(at string, checks []forge.Check) bool {
	return !slices.ContainsFunc(checks, func(c forge.Check) bool { return !slices.Contains(m.met[at], c.Text()) })
}

// isMet returns an error unless all that commands decide about an intent is met on a commit.
func (w *world) isMet(intent forge.IntentID, at string) error {
	// By the texts: the numbers of a goal's task need not be those that were asked for.
	for _, text := range w.workers.wanted[intent] {
		if !slices.Contains(w.workers.met[at], text) {
			return fmt.Errorf("%q of %s is not met on %s", text, intent, at)
		}
	}
	return nil
}

// checkMeasured returns an error if a judge was asked, or our commit is on the base
// branch, although a command that decides a criterion did not pass on exactly that commit.
func (w checker) checkMeasured() error {
	for _, key := range w.keys {
		for _, rec := range w.journal[key] {
			// The command names the commit to judge. The result does not help:
			// a wrong command may never get one.
			for i := range rec.Effects.Commands {
				c := &rec.Effects.Commands[i]
				if c.Attempt.Step != forge.StepJudge {
					continue
				}
				at := c.Task.Head
				if at == "" {
					at = c.Task.Base
				}
				if err := w.isMet(key.Intent, at); err != nil {
					return fmt.Errorf("a judge is asked: %w", err)
				}
				if texts := c.Goal().Criteria; slices.ContainsFunc(w.workers.wanted[key.Intent], func(s string) bool { return slices.Contains(texts, s) }) {
					return fmt.Errorf("a judge of %s is asked for what commands decide: %q", key, texts)
				}
			}
		}
	}
	for _, c := range w.repo.Main {
		if c.Task == "" || c.Unproven {
			continue
		}
		if err := w.isMet(c.Task.Intent(), c.ID); err != nil {
			return fmt.Errorf("it is merged: %w", err)
		}
	}
	return nil
}
