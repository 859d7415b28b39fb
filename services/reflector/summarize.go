package reflector

import (
	"cmp"
	"context"
	_ "embed" // the prompt
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/jobs"
)

//go:embed prompts/summarize.md
var summarizeText string

var summarizePrompt = prompt.New("summarize.md", summarizeText)

// summaryData is the data of the prompt for summaries.
type summaryData struct {
	*forge.Command

	Goal   forge.GoalContext
	Verify *forge.VerifyReport
	// Files are those of the change so far.
	Files []string
}

// summarize has the agent sum an iteration up. Without a model, the iteration's own
// report is the summary. Measured metadata is filled in here, and is never taken from
// an agent.
func summarize(ctx context.Context, j *jobs.Job) error {
	execution := j.Command.Iteration().Goal.Execution
	if execution == nil {
		return agent.Fail(forge.FailInvalidOutput, "goal.execution: is missing; there is nothing to sum up")
	}
	recipe, err := j.IsRecipe()
	if err != nil {
		return err
	}
	made := reported(execution)
	if !recipe {
		if made, err = summarized(ctx, j); err != nil {
			return err
		}
	}
	complete(&made, j.Command, time.Now().UTC())
	j.Result.Output = &made
	return nil
}

// summarized asks the command's agent, which sees nothing but the prompt. An attempt
// that is repeated begins a new session.
func summarized(ctx context.Context, j *jobs.Job) (forge.Summarization, error) {
	files, head, err := changed(ctx, j)
	if err != nil {
		return forge.Summarization{}, err
	}
	call := agent.Call{
		Role: agent.RoleSummarize, Schema: agent.SummarizationSchema, Session: agent.Session{ID: cmp.Or(j.Command.Session, agent.NewSessionID())},
	}
	in := j.Command.Iteration()
	if call.System, call.Prompt, err = render(summarizePrompt, &summaryData{j.Command, in.Goal, in.Verify, files}); err != nil {
		return forge.Summarization{}, err
	}
	out, err := j.Run(ctx, call)
	if err != nil {
		return forge.Summarization{}, err
	}
	made, err := agent.ParseSummarization(out.Answer)
	for i := range made.Knowledge {
		if k := &made.Knowledge[i]; !exists(ctx, j, head, k.ExampleFile) {
			k.ExampleFile = ""
		}
	}
	return made, err
}

// changed returns the files of the change so far, and its commit, or the tip of the
// base branch if there is no change.
func changed(ctx context.Context, j *jobs.Job) ([]string, git.OID, error) {
	t := &j.Command.Task
	if t.Head == "" || t.Head == t.Base {
		return nil, j.Tip, nil
	}
	base, err := jobs.OID("base", t.Base)
	if err != nil {
		return nil, "", err
	}
	head, err := jobs.OID("head", t.Head)
	if err != nil {
		return nil, "", err
	}
	if err := j.Bring(ctx, j.Command.To.Intent, base, head); err != nil {
		return nil, "", err
	}
	changes, err := j.Store.Changes(ctx, base, head)
	return jobs.Files(changes), head, err
}

// line matches the end of a reference, such as :12, :12-20 or #L12.
var line = pattern.New(`(:[0-9]+([-:,][0-9]+)*|#L[0-9]+(-L[0-9]+)?)$`)

// exists reports whether a commit has the file of a reference.
func exists(ctx context.Context, j *jobs.Job, commit git.OID, ref string) bool {
	p, err := git.ParsePath(line.ReplaceAllString(ref, ""))
	if err != nil {
		return false
	}
	_, err = j.Store.ReadFile(ctx, commit, p, 1)
	return err == nil || errors.Is(err, git.ErrTooLarge)
}

// reported returns an iteration's own report as a summary.
func reported(e *forge.Execution) forge.Summarization {
	return forge.Summarization{Summary: forge.ExecutionSummary{Approach: e.Approach, Result: e.Status, Reason: e.Output, Artifacts: e.Artifacts}}
}

// complete adds measured metadata, and corrects a summary that contradicts it.
func complete(s *forge.Summarization, cmd *forge.Command, now time.Time) {
	in, sum := cmd.Iteration(), &s.Summary
	e := in.Goal.Execution
	sum.Iteration, sum.Metadata, sum.At = in.Goal.Iteration, e.Metadata, now
	if len(sum.Metadata.StrategyTags) == 0 {
		sum.Metadata.StrategyTags = e.StrategyTags
	}
	if v := in.Verify; v != nil && !v.Passed && sum.Result == forge.ExecutionSuccess {
		sum.Result = forge.ExecutionFailure
	}
	known := func(k forge.Knowledge) bool {
		return slices.ContainsFunc(in.Goal.Knowledge, func(o forge.Knowledge) bool {
			return strings.EqualFold(strings.TrimSpace(o.Content), strings.TrimSpace(k.Content))
		})
	}
	s.Knowledge = slices.DeleteFunc(s.Knowledge, known)
	for i := range s.Knowledge {
		k := &s.Knowledge[i]
		k.SourceTask, k.CreatedAt = cmd.Intent.Title, now
	}
}
