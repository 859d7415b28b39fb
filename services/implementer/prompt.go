package implementer

import (
	"context"
	_ "embed" // the prompts
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs/goals"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

var (
	//go:embed prompts/making.md
	// makingText is shared by both prompts.
	makingText string
	//go:embed prompts/implement.md
	implementText string
	//go:embed prompts/execute.md
	executeText string

	implementPrompt = prompt.New("implement.md", makingText+implementText)
	executePrompt   = prompt.New("execute.md", makingText+executeText)
)

// promptInput is the state of an attempt that its prompt shows, beside the command.
type promptInput struct {
	opening sessions.Start
	// cutOff says that an earlier delivery of this attempt was cut off.
	cutOff bool
	// moved says that it goes on in another checkout.
	moved bool
	// interrupted is a commit with work that is not in the checkout.
	interrupted git.OID
	// commits are the task's on the branch, newest first.
	commits []string
	// checks are the project's verify commands, and the checks that the goal names.
	checks []string
	// neighbours are the changes that were merged near the task's files since its analysis.
	neighbours []neighbour
}

// overlapping is the part of a prompt about other tasks whose changes do not merge with this one.
type overlapping struct {
	// Elsewhere are those of them that are shown.
	Elsewhere []elsewhere
	// More counts those that are not shown.
	More int
}

// promptData is the data of the implementer's prompts.
type promptData struct {
	*forge.Command
	overlapping
	beginning

	Feedback    string
	Steps       string
	Checks      string
	Commits     string
	Answers     []forge.Clarification
	Interrupted git.OID
	Knowledge   string // has the findings of earlier runs, a line for each piece
	// Neighbours are the changes that were merged near the task's files since its analysis.
	Neighbours []neighbour

	Earlier []forge.Review
	// Rejected is the last review, if it rejected the change.
	Rejected *forge.Review
	// Reviewed says that it was of the commit that the branch has now.
	Reviewed bool
	// Why has the other complaints about the attempt before.
	Why string
}

// beginning says how a call begins, and with which tree.
type beginning struct {
	// Lost says that the prompt recapitulates what was done before.
	Lost bool
	// Again says that the task begins anew, without its earlier change.
	Again bool
	// Stopped says that it continues in the tree of the attempt before.
	Stopped bool
	// CutOff says that it continues after an interruption from outside.
	CutOff bool
	// Moved says that it continues from a checkpoint of that attempt.
	Moved bool
	// Answered says that it was blocked, and that a person answered.
	Answered bool
	// Empty says that nothing was committed so far.
	Empty bool
}

// elsewhere is another task under way, with the files of the overlap.
type elsewhere struct {
	Title string
	Files []string
}

// maxElsewhere bounds how many overlaps a prompt shows.
const maxElsewhere = 20

// overlaps returns the first overlaps for a prompt, and how many more there are.
func overlaps(list []forge.Overlap) (shown []elsewhere, more int) {
	for _, o := range list[:min(len(list), maxElsewhere)] {
		shown = append(shown, elsewhere{Title: "Task " + prompt.Line(string(o.TaskID)) + ":", Files: o.Files})
	}
	return shown, len(list) - len(shown)
}

// render returns the system prompt and the prompt of a call: for a task, for an
// iteration of a goal, or, in a session that is resumed, what was wrong.
func render(cmd *forge.Command, b promptInput) (system, text string, err error) {
	if cmd.Attempt.Step == forge.StepExecute {
		system, text, err = fill(executePrompt, b.opening, newGoalPromptData(cmd, b))
		return system + personAddition(cmd.Intent.Goal), text, err
	}
	t := newPromptData(cmd, b)
	return fill(implementPrompt, b.opening, &t)
}

// fill renders the parts of a template for the way in which the session begins.
func fill(p *prompt.Template, o sessions.Start, data any) (system, text string, err error) {
	if system, err = p.Render("system", nil); err != nil {
		return "", "", err
	}
	part := "prompt"
	if o == sessions.Resumed {
		part = "resume"
	}
	text, err = p.Render(part, data)
	return system, text, err
}

// newPromptData returns the data for a task.
func newPromptData(cmd *forge.Command, b promptInput) promptData {
	in, again := cmd.Implement(), cmd.Attempt.Number > 1
	t := promptData{
		Command: cmd, Neighbours: b.neighbours, Feedback: in.Feedback, Interrupted: b.interrupted, Steps: numbered(cmd.Task.Steps),
		Checks: strings.Join(b.checks, "\n"), Commits: strings.Join(b.commits, "\n"),
		beginning: beginning{
			Stopped: in.Continue && !in.Answered, Answered: in.Answered && in.Continue, CutOff: b.cutOff, Moved: b.moved,
			Again: again && in.Fresh && cmd.Task.Head != cmd.Task.Base,
		},
		Why: strings.TrimSpace(strings.TrimPrefix(in.Feedback, cmd.Instructions)), // what a person said is shown as that
	}
	if cmd.Wish != nil { // so are the words of one who asks for changes
		t.Why = strings.TrimSpace(strings.TrimPrefix(t.Why, strings.TrimSpace(cmd.Wish.Words)))
	}
	t.Elsewhere, t.More = overlaps(in.Overlaps)
	t.Knowledge = agent.KnowledgeLines(in.Knowledge)
	if in.Goal != nil {
		t.Knowledge = agent.KnowledgeLines(in.Goal.Knowledge)
	}
	t.Answers = slices.DeleteFunc(slices.Clone(cmd.Intent.Clarifications), func(c forge.Clarification) bool {
		return c.Answer == nil || b.opening == sessions.Resumed && !(in.Answered && c.Task == cmd.Task.ID)
	})
	t.Lost = b.opening == sessions.Lost || b.opening == sessions.New && again && !t.Again
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

// numbered returns the steps as a numbered list.
func numbered(steps []string) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n   "))
	}
	return b.String()
}

// maxCommits bounds how many commits a prompt shows.
const maxCommits = 30

// shownCommits returns the commits that the task has on its branch already.
func (w *work) shownCommits(ctx context.Context) ([]string, error) {
	if w.state.From == w.state.Base {
		return nil, nil
	}
	n, err := w.Store.Commits(ctx, w.state.Base, w.state.From)
	if err != nil || n == 0 {
		return nil, err
	}
	log, err := w.Store.Log(ctx, "", w.state.From, min(n, maxCommits))
	if err != nil {
		return nil, err
	}
	var list []string
	for _, l := range log {
		list = append(list, l.Commit.Short()+" "+l.Subject)
	}
	return list, nil
}

// prompts returns the system prompt and the prompt for the way in which the session
// begins.
func (w *work) prompts(ctx context.Context, o sessions.Start) (system, text string, err error) {
	b := promptInput{opening: o, cutOff: w.touched || w.moved, moved: w.moved, interrupted: w.state.Interrupted}
	b.checks = slices.Concat(w.Config.Verify, goals.Named(w.Config, w.Command.Task.Checks))
	if b.commits, err = w.shownCommits(ctx); err != nil {
		return "", "", err
	}
	if o != sessions.Resumed {
		b.neighbours = w.mergedNeighbours(ctx)
	}
	return render(w.Command, b)
}
