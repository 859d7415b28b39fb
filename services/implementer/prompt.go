package implementer

import (
	"context"
	_ "embed" // the prompts
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/repository"
)

var (
	//go:embed prompts/making.md
	makingText string // what both have
	//go:embed prompts/implement.md
	implementText string
	//go:embed prompts/execute.md
	executeText string

	implementPrompt = prompt.New("implement.md", makingText+implementText)
	executePrompt   = prompt.New("execute.md", makingText+executeText)
)

// briefing is what an implementer's prompt is made from, beside the command.
type promptInput struct {
	opening     repository.SessionStart
	cutOff      bool     // an earlier delivery of this attempt was
	moved       bool     // to another checkout
	interrupted git.OID  // keeps work that was cut off and is not in the checkout
	commits     []string // of the task on the branch, newest first
	checks      []string // the project's verify commands
}

// told is what the agent is told.
type promptData struct {
	*forge.Command
	Feedback    string
	Steps       string
	Checks      string
	Commits     string
	Answers     []forge.Clarification
	Interrupted git.OID
	Elsewhere   []elsewhere // tasks under way that it does not merge with
	More        int         // of them, which are not shown

	Lost     bool // it has to be told what was done before
	Again    bool // it begins anew, without the change that was made before
	Stopped  bool // it goes on in what the attempt before left
	CutOff   bool // it goes on where it was cut off from outside
	Moved    bool // as far as that was saved
	Empty    bool // nothing was committed so far
	Earlier  []forge.Review
	Rejected *forge.Review // the last review, if that is what it said
	Reviewed bool          // it was of what is on the branch now
	Why      string        // what else was wrong with the attempt before
}

// elsewhere is another task under way, and the files in which it is in the way.
type elsewhere struct {
	Title string
	Files []string
}

// maxElsewhere bounds how many of them an agent is told about.
const maxElsewhere = 20

func overlaps(list []forge.Overlap) (shown []elsewhere, more int) {
	for _, o := range list[:min(len(list), maxElsewhere)] {
		shown = append(shown, elsewhere{Title: "Task " + prompt.Line(string(o.TaskID)) + ":", Files: o.Files})
	}
	return shown, len(list) - len(shown)
}

// render returns who the agent is, and what it has to do: a task, an iteration towards a
// goal, or, in a conversation that goes on, what was wrong.
func render(cmd *forge.Command, b promptInput) (system, text string, err error) {
	if cmd.Attempt.Step == forge.StepExecute {
		system, text, err = fill(executePrompt, b.opening, newGoalPromptData(cmd, b))
		return system + personAddition(cmd.Intent.Goal), text, err
	}
	t := newPromptData(cmd, b)
	return fill(implementPrompt, b.opening, &t)
}

func fill(p *prompt.Template, o repository.SessionStart, data any) (system, text string, err error) {
	if system, err = p.Render("system", nil); err != nil {
		return "", "", err
	}
	part := "prompt"
	if o == repository.StartResumed {
		part = "resume"
	}
	text, err = p.Render(part, data)
	return system, text, err
}

func newPromptData(cmd *forge.Command, b promptInput) promptData {
	in, again := cmd.Implement(), cmd.Attempt.Number > 1
	t := promptData{
		Command: cmd, Feedback: in.Feedback, Interrupted: b.interrupted, Steps: numbered(cmd.Task.Steps),
		Checks: strings.Join(b.checks, "\n"), Commits: strings.Join(b.commits, "\n"),
		Stopped: in.Continue, CutOff: b.cutOff, Moved: b.moved,
		Again: again && in.Fresh && cmd.Task.Head != cmd.Task.Base,
		Why:   strings.TrimSpace(strings.TrimPrefix(in.Feedback, cmd.Instructions)), // what a person said is shown as that
	}
	t.Elsewhere, t.More = overlaps(in.Overlaps)
	t.Answers = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications), func(c forge.Clarification) bool { return c.Answer == nil })
	t.Lost = b.opening == repository.StartLost || b.opening == repository.StartNew && again && !t.Again
	t.Empty = again && t.Commits == "" && b.interrupted == ""
	if n := len(in.Reviews); n > 0 {
		if last := &in.Reviews[n-1]; last.Verdict == forge.VerdictRejected {
			t.Rejected, t.Reviewed = last, last.Head == cmd.Task.Head
			if t.Why == strings.Join(last.Issues, "\n") {
				t.Why = "" // it says the same
			}
			n--
		}
		if t.Lost {
			t.Earlier = in.Reviews[:n]
		}
	}
	return t
}

func numbered(steps []string) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n   "))
	}
	return b.String()
}

// maxCommits bounds how many commits an agent is shown.
const maxCommits = 30

// shownCommits lists what the task has on its branch already.
func (w *work) shownCommits(ctx context.Context) ([]string, error) {
	if w.state.From == w.state.Base {
		return nil, nil
	}
	n, err := w.Store.Commits(ctx, w.state.Base, w.state.From)
	if err != nil || n == 0 {
		return nil, err
	}
	log, err := w.Store.Log(ctx, w.state.From, min(n, maxCommits))
	if err != nil {
		return nil, err
	}
	var list []string
	for _, l := range log {
		list = append(list, l.Commit.Short()+" "+l.Subject)
	}
	return list, nil
}

// prompts returns what the agent is told at the opening of a call.
func (w *work) prompts(ctx context.Context, o repository.SessionStart) (system, text string, err error) {
	b := promptInput{opening: o, cutOff: w.touched || w.moved, moved: w.moved, interrupted: w.state.Interrupted, checks: w.Config.Verify}
	if b.commits, err = w.shownCommits(ctx); err != nil {
		return "", "", err
	}
	return render(w.Command, b)
}
