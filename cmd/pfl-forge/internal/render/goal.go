package render

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Goal returns in a line how far a goal is: "iteration 2 of 10, 1 of 3 criteria
// met".
func Goal(g *forge.GoalSummary) string {
	met := fmt.Sprintf("%d of %s met", g.Met, Criteria(g.Criteria))
	switch {
	case g.Status != "":
		return fmt.Sprintf("%s after %s, %s", g.Status, Count(g.Used, "iteration"), met)
	case g.Used == 0:
		return fmt.Sprintf("no iteration yet, %d at most", g.Most)
	}
	return fmt.Sprintf("iteration %d of %d, %s", g.Used, g.Most, met)
}

// Criteria returns "1 criterion" or "3 criteria".
func Criteria(n int) string {
	if n == 1 {
		return "1 criterion"
	}
	return fmt.Sprintf("%d criteria", n)
}

// longestWord bounds the text of an agent in a line, in bytes.
const longestWord = 200

// intake, and the functions below it, each say the outcome of a goal's step in
// a few words.
func intake(i *forge.Intake) string {
	if n := len(i.Clarifications); n > 0 {
		return Count(n, "question")
	}
	if len(i.Criteria) == 0 {
		return "commands decide every criterion"
	}
	return Criteria(len(i.Criteria))
}

// checks returns how many of the criteria that commands decide are met, after
// what is said of verify commands. Where one is not, that is why no judge is
// asked and another iteration begins, so it is told like a failed verify command.
func checks(v *forge.VerifyReport, said string) (string, Tone) {
	if v == nil || len(v.Checks) == 0 {
		return said, Plain
	}
	passed := 0
	for i := range v.Checks {
		if v.Checks[i].Passed {
			passed++
		}
	}
	text := fmt.Sprintf("%s, %d of %s passed", said, passed, Count(len(v.Checks), "check"))
	if passed < len(v.Checks) {
		return text, Bad
	}
	return text, Plain
}

func execution(i *forge.Implementation) (string, Tone) {
	text := fmt.Sprintf("%s, %s", i.Execution.Status, implementation(i))
	if i.Execution.Status != forge.ExecutionSuccess {
		return text, Bad
	}
	return text, Plain
}

// summarization returns the result and approach of an iteration in a line.
func summarization(s *forge.Summarization) string {
	text := string(s.Summary.Result)
	if s.Summary.Approach != "" {
		text += ": " + term.Short(s.Summary.Approach, longestWord)
	}
	if n := len(s.Knowledge); n > 0 {
		text += fmt.Sprintf(", %s", Count(n, "new finding"))
	}
	return text
}

// judgment returns how many criteria a judge found met, and whether that is good news. Its word
// alone is not: the rules count what code has found.
func judgment(j *forge.Judgment) (string, Tone) {
	met := 0
	for i := range j.Claims {
		if j.Claims[i].Counts() {
			met++
		}
	}
	text := fmt.Sprintf("%d of %s met", met, Criteria(len(j.Claims)))
	if len(j.Claims) == 0 {
		text = "no judge was asked: commands decide every criterion"
	}
	if j.Complete {
		if why := notShown("criterion", j.Claims); why != "" {
			return text + " by its word, but " + term.Short(why, 200), Bad
		}
		return text, Good
	}
	if j.NextAction != "" {
		text += ", next: " + term.Short(j.NextAction, longestWord)
	}
	return text, Bad
}
