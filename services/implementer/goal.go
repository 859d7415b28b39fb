package implementer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/repository"
)

// Bounds of what an agent is told of the iterations before.
const (
	maxSummaries = 48 << 10 // bytes of all of them
	maxEntries   = 15       // of one list in a summary
)

// toldGoal is what the agent is told of a goal.
type goalPromptData struct {
	promptData

	Loop      *forge.GoalContext
	Criteria  string
	Summaries []iteration // oldest first
	Left      int         // of them, which are not shown
	Judged    *judged     // nil before the first judgment
	Knowledge string
}

// iteration is one that came before.
type iteration struct {
	Number int
	Result forge.ExecutionStatus
	Text   string
}

// judged is the last judgment.
type judged struct {
	Met, Of int
	Old     bool   // it is not of what is on the branch now
	Text    string // criterion by criterion
	Next    string
}

// tellGoal says what an agent is told of an iteration, which begins as a conversation of
// its own without that one was lost.
func newGoalPromptData(cmd *forge.Command, b promptInput) *goalPromptData {
	l := cmp.Or(cmd.Goal(), &forge.GoalContext{})
	t := &goalPromptData{
		promptData: newPromptData(cmd, b), Loop: l, Criteria: numbered(l.Criteria), Judged: judgment(l.Judgment, &cmd.Task), Knowledge: knowledge(l.Knowledge),
	}
	t.Lost = b.opening == repository.StartLost
	t.Summaries, t.Left = summaries(l.Summaries)
	return t
}

// added is what a person adds to the system prompt.
func personAddition(goal *forge.GoalOptions) string {
	if goal == nil {
		return ""
	}
	text := strings.TrimSpace(term.Sanitize(goal.SystemPrompt))
	if text == "" {
		return ""
	}
	return "\nThe person who set this goal adds:\n" + text + "\n"
}

// summaries returns the newest that there is room for, oldest first.
func summaries(list []forge.ExecutionSummary) (shown []iteration, left int) {
	room := maxSummaries
	for i := range slices.Backward(list) {
		it := iteration{list[i].Iteration, list[i].Result, summary(&list[i])}
		if room -= len(it.Text); room < 0 && len(shown) > 0 {
			break
		}
		shown = append(shown, it)
	}
	slices.Reverse(shown)
	return shown, len(list) - len(shown)
}

func summary(s *forge.ExecutionSummary) string {
	var b strings.Builder
	say := func(name, text string) {
		if text = term.Line(text); text != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, text)
		}
	}
	list := func(name string, of []string) {
		shown := slices.Clone(of[:min(len(of), maxEntries)])
		if more := len(of) - len(shown); more > 0 {
			shown = append(shown, fmt.Sprintf("(%d more)", more))
		}
		say(name, strings.Join(shown, "; "))
	}
	say("Approach", s.Approach)
	say("Why it ended so", s.Reason)
	say("Error", s.Metadata.ErrorType)
	list("Files", s.Artifacts)
	if n := s.Next; n != nil {
		say("Done so far", n.PartialProgress)
		list("Left to do", n.PendingItems)
		list("In the way", n.Blockers)
		say("Suggested next", n.SuggestedAction)
	}
	return b.String()
}

func judgment(j *forge.Judgment, t *forge.Task) *judged {
	if j == nil {
		return nil
	}
	head := t.Head
	if head == t.Base {
		head = "" // nothing was changed
	}
	out := &judged{Of: len(j.Evaluations), Old: j.Head != head, Next: j.NextAction}
	var b strings.Builder
	for i, e := range j.Evaluations {
		verdict := "not met"
		if e.Met {
			verdict = "met"
			out.Met++
		}
		fmt.Fprintf(&b, "%d. %s (confidence %.1f): %s\n", i+1, verdict, e.Confidence, term.Line(e.Evidence))
	}
	if j.Reason != "" {
		fmt.Fprintf(&b, "In all: %s\n", term.Line(j.Reason))
	}
	out.Text = b.String()
	return out
}

// knowledge is one piece in a line.
func knowledge(list []forge.Knowledge) string {
	var b strings.Builder
	for _, k := range list {
		kind := strings.Join(slices.DeleteFunc([]string{string(k.Type), k.Category}, func(s string) bool { return s == "" }), ", ")
		line := fmt.Sprintf("%s (%s; confidence %s): %s", k.ID, kind, k.Confidence, k.Content)
		if k.ExampleFile != "" {
			line += " See " + k.ExampleFile
		}
		fmt.Fprintf(&b, "- %s\n", term.Line(line))
	}
	return b.String()
}
