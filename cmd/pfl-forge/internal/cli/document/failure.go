package document

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Failure is a reason for which attempts fail, explained.
type Failure struct {
	Reason  forge.FailureReason `json:"reason"  yaml:"reason"`
	Meaning string              `json:"meaning" yaml:"meaning"`
	Do      string              `json:"do"      yaml:"do"` // what a person can do
}

// failuresOf returns the reasons that an intent and its tasks name for having failed, each
// once. An intent that can still succeed by itself has none.
func failuresOf(s *forge.Summary) []Failure {
	texts := []string{s.Reason}
	for i := range s.Tasks {
		texts = append(texts, s.Tasks[i].Detail)
	}
	if s.Waiting == forge.WaitingBudget {
		texts = append(texts, string(forge.FailBudget))
	}
	if s.Waiting != forge.WaitingFailed && s.Waiting != forge.WaitingBudget {
		return nil // it is on its way, and may yet succeed
	}
	var list []Failure
	for _, text := range texts {
		if f, ok := FailureOf(text); ok && !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// FailureOf returns the reason that a text about a failure begins with; false if it names
// none.
func FailureOf(text string) (Failure, bool) {
	r, ok := render.ReasonOf(text)
	return Failure{r.Name, r.Meaning, r.Do}, ok
}

// String returns the reason, what it means and what to do, in a line.
func (f Failure) String() string { return fmt.Sprintf("%s: %s; %s", f.Reason, f.Meaning, f.Do) }

// maxOutput bounds the lines of a command's output in a description of several tasks.
const maxOutput = 10

// PrintTaskFailure prints why a task failed and the issues of its reviews, each once, without
// what was said before, and notes what it says. It prints only the end of a command's output.
func PrintTaskFailure(a *kit.App, said *Said, task forge.TaskID, failure string, issues []string) {
	say := func(what, text string) {
		if text != "" && !said.holds(text) {
			fmt.Fprintln(a.Out, kit.Indent(kit.Safe(what+text), "      "))
			said.Add(text)
		}
	}
	describe := func(what, text string) {
		why, output := splitOutput(text)
		say(what, why)
		lines := strings.Split(output, "\n")
		if more := len(lines) - maxOutput; more > 0 {
			say("", fmt.Sprintf("... the last %d of %d lines; all: pfl-forge show %s", maxOutput, len(lines), task))
			lines = lines[more:]
		}
		say("", strings.Join(lines, "\n"))
	}
	if failure != "" {
		describe("", failure)
	}
	for _, issue := range issues {
		if text := strings.TrimSpace(issue); !introducesOutput(text) {
			say("review: ", text)
			continue
		}
		describe("review: ", issue)
	}
}

// introducesOutput reports whether the first line of a text introduces the output of a
// command.
func introducesOutput(text string) bool {
	line, _, more := strings.Cut(text, "\n")
	return more && strings.HasSuffix(line, ":")
}

// splitOutput returns the cause of a failure in a line, and what a command printed.
func splitOutput(text string) (why, output string) {
	text = strings.TrimSpace(text)
	line, rest, _ := strings.Cut(text, "\n")
	if introducesOutput(text) {
		return render.Gist(text), rest
	}
	if introducesOutput(rest) { // the cause was put before the message
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return line, rest
}
