package implementer

import (
	"context"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// isExecute reports whether a command is for an iteration of a goal. It is worked on
// like a task, but has its own prompt and answer, and may change nothing.
func isExecute(c *forge.Command) bool { return c.Attempt.Step == forge.StepExecute }

// execution returns the agent's report of an iteration, with the metadata that was
// measured.
func (w *work) execution(ctx context.Context, got *checkout.Collected) (*forge.Execution, error) {
	e := *w.state.Execution
	files, err := w.modified(ctx, got)
	if err != nil {
		return nil, err
	}
	e.Metadata = forge.SummaryMetadata{
		ToolsUsed: w.state.Tools, FilesModified: files, TokensUsed: w.state.Tokens + tokens(w.Result.Usage), StrategyTags: e.StrategyTags,
	}
	return &e, nil
}

// tokens returns the input and output tokens of a usage.
func tokens(u forge.Usage) int64 { return u.InputTokens + u.OutputTokens }

// modified returns the files that changed since the attempt, or those that it
// continues, began, committed or not; sorted, each once.
func (w *work) modified(ctx context.Context, got *checkout.Collected) ([]string, error) {
	var list []string
	for _, step := range [][2]git.OID{{w.state.From, got.Head}, {got.Head, got.Leftover}} {
		if step[1] == "" || step[0] == step[1] {
			continue
		}
		changes, err := w.Store.Changes(ctx, step[0], step[1])
		if err != nil {
			return nil, err
		}
		list = append(list, jobs.Files(changes)...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
