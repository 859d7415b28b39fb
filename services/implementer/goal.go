package implementer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// Bounds of a prompt.
const (
	// maxSummaries bounds the summaries of earlier iterations in a prompt, in bytes.
	maxSummaries = 48 << 10
	// maxEntries bounds each list in a summary.
	maxEntries = 15
)

// goalPromptData is the data of the prompt of an iteration.
type goalPromptData struct {
	promptData

	Loop     *forge.GoalContext
	Criteria string
	// Summaries are the newest ones that fit, oldest first.
	Summaries []iteration
	// Left counts those that do not fit.
	Left int
	// Judged is nil before the first judgment.
	Judged *judged
}

// iteration is an earlier iteration, as the prompt shows it.
type iteration struct {
	Number int
	Result forge.ExecutionStatus
	Text   string
}

// judged is the last judgment, as the prompt shows it.
type judged struct {
	Met, Of int
	// Old says that it was not of the commit that the branch has now.
	Old bool
	// Text has a line for each criterion.
	Text string
	Next string
}

// newGoalPromptData returns the data for an iteration, which begins with a new
// session without the earlier one being lost.
func newGoalPromptData(cmd *forge.Command, b promptInput) *goalPromptData {
	l := cmp.Or(cmd.Goal(), &forge.GoalContext{})
	t := &goalPromptData{
		promptData: newPromptData(cmd, b), Loop: l, Criteria: numbered(l.Criteria), Judged: judgment(l.Judgment, &cmd.Task),
	}
	t.Lost = b.opening == sessions.Lost
	t.Summaries, t.Left = summaries(l.Summaries)
	return t
}

// personAddition returns the text that a person adds to the system prompt of a goal.
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

// summaries returns the newest summaries that fit, oldest first, and how many do not.
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

// summary returns one summary as lines of text. An agent wrote it, so each entry is one line, and
// a list has at most maxEntries of them.
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

// judgment returns a judgment for the prompt, nil if there is none.
func judgment(j *forge.Judgment, t *forge.Task) *judged {
	if j == nil {
		return nil
	}
	head := t.Head
	if head == t.Base {
		head = "" // nothing was changed
	}
	out := &judged{Of: len(j.Claims), Old: j.Head != head, Next: j.NextAction}
	var b strings.Builder
	for i := range j.Claims {
		c := &j.Claims[i]
		verdict, note := "not met", c.Note
		switch {
		case c.Counts():
			verdict = "met"
			out.Met++
		case c.Unproven != "":
			verdict, note = "not shown to be met", c.Unproven
		}
		fmt.Fprintf(&b, "%d. %s (confidence %.1f): %s\n", c.Number, verdict, c.Confidence, term.Line(note))
	}
	if j.Reason != "" {
		fmt.Fprintf(&b, "In all: %s\n", term.Line(j.Reason))
	}
	out.Text = b.String()
	return out
}
