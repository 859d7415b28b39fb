package pending

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// adopting matches the flag by which a commit is adopted, as the rules say it
// in the reason that an intent waits.
var adopting = pattern.New(` --adopt [0-9a-f]{12,64}`)

// Commands returns the commands that a person can type about an intent: for its
// choices, how to see all of it, and how to see the first of its tasks.
func Commands(s *forge.Summary) []string {
	var list []string
	for _, c := range Choices(s) {
		list = append(list, c.typed(s)...)
	}
	id := string(s.Key.Intent)
	if failedGoal(s) {
		list = append(list, "pfl-forge goal status "+id)
	} else {
		list = append(list, "pfl-forge show "+id)
	}
	switch s.Waiting {
	case forge.WaitingDirty, forge.WaitingPaused, forge.WaitingFailed, forge.WaitingBase, forge.WaitingPull:
		const most = 3
		for _, t := range s.Tasks[:min(most, len(s.Tasks))] {
			list = append(list, "pfl-forge show "+string(t.ID))
		}
	case forge.WaitingApproval, forge.WaitingClarification, forge.WaitingBudget:
	}
	return list
}

// retryTyped returns the ways to retry an intent, with what has to be done before.
func retryTyped(s *forge.Summary) []string {
	id := string(s.Key.Intent)
	retry := "pfl-forge retry " + id
	switch {
	case s.Waiting == forge.WaitingDirty:
		return []string{"git commit or git stash, then " + retry}
	case s.Waiting == forge.WaitingBase:
		return []string{
			"fix the base branch, then continue all at once with " + retry + ", or wait: it is checked again within 5 minutes",
			retry + " --with 'fix it'", // then this change is to do so
		}
	case s.Waiting == forge.WaitingBudget && strings.Contains(s.Reason, "budget."): // of all intents together
		return []string{"raise the budget in " + config.FileName + " and commit it, then " + retry}
	case s.Waiting == forge.WaitingBudget:
		return []string{retry + " --budget USD"}
	case s.Waiting == forge.WaitingPull && adopting.MatchString(s.Reason): // the rules say which commit
		return []string{retry, retry + adopting.FindString(s.Reason)}
	case failedGoal(s):
		retry = "pfl-forge goal resume " + id
	}
	return []string{retry, retry + " --with 'instructions'"}
}

// failedGoal reports whether an intent is a goal that failed: what can be done about it is
// suggested in the words of goals.
func failedGoal(s *forge.Summary) bool { return s.Goal != nil && s.Waiting == forge.WaitingFailed }

// noun returns the beginning of a command about an intent.
func noun(s *forge.Summary) string {
	if failedGoal(s) {
		return "pfl-forge goal "
	}
	return "pfl-forge "
}
