package sim

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
)

// complexity returns how complex a task is, of which there may be several in an intent.
func (w worker) complexity(n int) forge.Complexity {
	if len(w.money.best.When) > 0 && n%2 == 0 {
		return forge.ComplexityHigh
	}
	return ""
}

// choice matches the line about a choice in the history: the commit that goes
// on, and the one that does not.
var choice = pattern.New(`^the (?:first|second) \(implement \d+(?:, (\w+))?\), and not implement \d+(?:, (\w+))?:`)

// checkBest returns an error if a task had more than one second change in a
// run, or if the wrong one went on.
func (w checker) checkBest() error {
	said := pairs(w.world)
	for _, key := range w.intents() {
		for _, h := range w.view(key).History {
			seconds := map[forge.TaskID]int{}
			for _, a := range h.Adjustments {
				switch a.Rule {
				case "best-of-two":
					if seconds[a.TaskID]++; seconds[a.TaskID] > 1 {
						return fmt.Errorf("%s has %d second changes in run %d", a.TaskID, seconds[a.TaskID], h.Run)
					}
				case "chosen":
					if err := w.checkChoice(a, said); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// checkChoice returns an error if the change that was not chosen is on the base
// branch, or if what the reviewers said, or the files, speak for it.
func (w checker) checkChoice(a forge.Adjustment, said map[string]opinions) error {
	approved := func(head string) bool {
		o := said[head]
		return o.enough() || o.first && w.money.second.By.Agent == ""
	}
	guarded := func(c trunk.Commit) bool { return len(w.money.protected) > 0 && slices.Contains(c.Files, "f0") }
	m := choice.FindStringSubmatch(a.Detail)
	if m == nil {
		return fmt.Errorf("%s: it is not said which one was chosen: %q", a.TaskID, a.Detail)
	}
	on, out := w.repo.Heads[m[1]], w.repo.Heads[m[2]]
	switch {
	case out.ID == "" || on.Patch == out.Patch:
	case slices.ContainsFunc(w.repo.Main, func(c trunk.Commit) bool { return c.Task == a.TaskID && c.Patch == out.Patch }):
		return fmt.Errorf("%s was merged for %s, although %s was chosen", out.ID, a.TaskID, on.ID)
	case approved(out.ID) && !approved(on.ID):
		return fmt.Errorf("%s was chosen for %s, although %s is approved: %s", on.ID, a.TaskID, out.ID, a.Detail)
	case approved(out.ID) && guarded(on) == guarded(out) && len(out.Files) < len(on.Files):
		return fmt.Errorf("%s was chosen for %s, although %s changes less: %s", on.ID, a.TaskID, out.ID, a.Detail)
	}
	return nil
}
