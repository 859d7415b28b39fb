package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// checksOfProject are the names that a reviewer may ask for, and one that the
// project does not have.
var checksOfProject = []string{"tests", "lint", "vet", "no/name"}

// asks now and then has a review ask for checks: for some that it had, for more
// than it may, or for some although it may ask for none.
func (w worker) asks(rv *forge.Review, may int) {
	if may == 0 && !w.chance(12) || may > 0 && !w.chance(3) {
		return
	}
	for range 1 + w.rng.IntN(3) {
		rv.Asked = append(rv.Asked, forge.CheckRun{Name: checksOfProject[w.rng.IntN(len(checksOfProject))]})
	}
	if w.chance(2) {
		rv.Verdict = ""
	}
}

// askedRun is one run that a reviewer asked for, of exactly one commit.
type askedRun struct{ head, name string }

// runAsked runs checks that a reviewer asked for, well or badly: now and then one fails,
// is left out, or is reported of another commit, or the whole report is one of another
// commit.
func (w worker) runAsked(c *forge.Command) *forge.Rebase {
	rb := &forge.Rebase{Base: c.Task.Base, Head: c.Task.Head, Tree: "tree-" + c.Task.Head, Verify: &forge.VerifyReport{Passed: true}}
	other := w.chance(12)
	if other {
		rb.Head, rb.Tree = w.repo.Tip(), "tree-"+w.repo.Tip()
	}
	for _, name := range c.Rebase().Asked {
		run := forge.CheckRun{ID: verdict.RunID(&forge.Check{Name: name}), Name: name, Command: "make " + name, Tree: rb.Tree, Passed: true}
		switch {
		case w.chance(4):
			run.Passed, run.ExitCode, run.Output = false, 1, "it broke"
		case w.chance(10):
			run.Tree = "tree-of-another"
		case w.chance(11):
			continue
		case !other || rb.Head == c.Task.Head:
			w.workers.ran[askedRun{c.Task.Head, name}] = true
		}
		rb.Verify.Checks = append(rb.Verify.Checks, run)
	}
	return rb
}

// askedFirst reports whether a review asks for a check that it may have. Then
// it is no verdict, whatever else it says.
func (w *world) askedFirst(r *forge.Result) bool {
	rv := forge.As[*forge.Review](r.Output)
	if rv == nil || len(rv.Asked) == 0 {
		return false
	}
	for _, rec := range w.journal[r.To] {
		for i := range rec.Effects.Commands {
			c := &rec.Effects.Commands[i]
			if in := c.Review(); c.Attempt == r.Attempt && in.MayAsk > 0 {
				return slices.ContainsFunc(rv.Asked, func(a forge.CheckRun) bool {
					return a.Name != "no/name" && !slices.ContainsFunc(in.Asked, func(had forge.CheckRun) bool { return had.Name == a.Name })
				})
			}
		}
	}
	return false
}

// checkAsked returns an error if a reviewer was told that a check passed which did not on
// exactly its commit, or got more of them in one session than the policy allows.
func (w checker) checkAsked() error {
	for _, key := range w.keys {
		asked := map[string]int{}
		for _, rec := range w.journal[key] {
			for i := range rec.Effects.Commands {
				c := &rec.Effects.Commands[i]
				runs := c.Review().Asked
				for _, run := range runs {
					if run.Passed && !w.workers.ran[askedRun{c.Task.Head, run.Name}] {
						return fmt.Errorf("%s is told that %s passed on %s, where it did not", c.ID(), run.Name, c.Task.Head)
					}
				}
				if asked[c.Session] = max(asked[c.Session], len(runs)); c.Session != "" && asked[c.Session] > w.money.checks {
					return fmt.Errorf("%s is told of %d checks, of which it may ask for %d", c.ID(), len(runs), w.money.checks)
				}
				if names := c.Rebase().Asked; slices.Contains(names, "no/name") {
					return fmt.Errorf("%s runs %q", c.ID(), names)
				}
			}
		}
	}
	return nil
}
