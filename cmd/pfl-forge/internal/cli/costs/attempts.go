// Package costs shows what agents used: the command for a project, and for show the attempts of an
// intent, one by one.
//
// The command reads the journals of a project, and by HTTP prints the answer of a gateway; show
// calls Attempts for one intent. A ledger divides the sums of the budgets among the attempts
// (services/runner/spending). An attempt counts when it ends, so totals agree with the budgets.
package costs

import (
	"context"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// AttemptDetail is an attempt that has ended, with what it used, as programs read it.
type AttemptDetail struct {
	// Task is the task that it worked on; empty if it was about the whole intent.
	Task    forge.TaskID `json:"task,omitempty" yaml:"task,omitempty"`
	Step    forge.Step   `json:"step"           yaml:"step"`
	Attempt int          `json:"attempt"        yaml:"attempt"`

	// Outcome is ok, rejected, another verdict, or the name of a failure.
	Outcome string `json:"outcome" yaml:"outcome"`

	// Agent, Model and Session are empty if no agent was called, such as for a rebase.
	Agent   string `json:"agent,omitempty"   yaml:"agent,omitempty"`
	Model   string `json:"model,omitempty"   yaml:"model,omitempty"`
	Session string `json:"session,omitempty" yaml:"session,omitempty"`

	// Executor is the weakest that its agent, recipe and commands had: pods, namespaces or none;
	// empty if none of these ran.
	Executor forge.Executor `json:"executor,omitempty" yaml:"executor,omitempty"`

	// Seconds is its duration; the others add up the usage of its calls.
	Seconds          float64   `json:"seconds"            yaml:"seconds"`
	InputTokens      int64     `json:"input_tokens"       yaml:"input_tokens"`
	OutputTokens     int64     `json:"output_tokens"      yaml:"output_tokens"`
	CacheReadTokens  int64     `json:"cache_read_tokens"  yaml:"cache_read_tokens"`
	CacheWriteTokens int64     `json:"cache_write_tokens" yaml:"cache_write_tokens"`
	Turns            int64     `json:"turns"              yaml:"turns"`
	CostUSD          float64   `json:"cost_usd"           yaml:"cost_usd"`
	EndedAt          time.Time `json:"ended_at"           yaml:"ended_at"`
}

// Usage returns the tokens, turns and cost of the attempt's calls together.
func (d *AttemptDetail) Usage() forge.Usage {
	return forge.Usage{
		InputTokens: d.InputTokens, OutputTokens: d.OutputTokens, CacheReadTokens: d.CacheReadTokens, CacheWriteTokens: d.CacheWriteTokens,
		Turns: d.Turns, CostUSD: d.CostUSD,
	}
}

// Attempts returns every attempt of an intent that has ended, in that order. Attempts that are
// under way are not among them: what they cost is known when they end.
func Attempts(ctx context.Context, t *target.Target, id forge.IntentID) ([]AttemptDetail, error) {
	ended, err := t.Attempts(ctx, id)
	if err != nil {
		return nil, err
	}
	var list []AttemptDetail
	for i := range ended {
		s := &ended[i]
		u := &s.Usage
		list = append(list, AttemptDetail{
			Task: s.TaskID, Step: s.Step, Attempt: s.Attempt, Outcome: s.Outcome, Agent: s.Agent, Model: s.Model, Session: s.Session, Executor: s.Executor,
			Seconds: s.Duration.Seconds(), InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
			CacheWriteTokens: u.CacheWriteTokens, Turns: u.Turns, CostUSD: u.CostUSD, EndedAt: s.At,
		})
	}
	return list, nil
}

// PrintAttempts prints attempts as a table, a row for each in their order. Tokens are those that
// the model read and wrote anew, CACHED those that it took from a cache: they have different
// prices.
func PrintAttempts(a *kit.App, list []AttemptDetail) error {
	columns := render.Columns{
		Header: []string{"ENDED", "STEP", "OUTCOME", "AGENT", "MODEL", "EXECUTOR", "TIME", "TOKENS", "CACHED", "COST", "SESSION"},
		Shrink: 10,
	}
	for i := range list {
		d := &list[i]
		used := d.Usage()
		columns.Add(d.EndedAt.Local().Format(time.DateTime), render.StepName(forge.Attempt{Step: d.Step, Number: d.Attempt}), render.Outcome(d.Step, d.Outcome),
			d.Agent, d.Model, string(d.Executor), render.Took(time.Duration(d.Seconds*float64(time.Second))),
			render.Tokens(render.Fresh(&used)), render.Tokens(render.Cached(&used)), render.Cost(d.CostUSD), strings.TrimSpace(d.Session))
	}
	return a.Table(&columns)
}
