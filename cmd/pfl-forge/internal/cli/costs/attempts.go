// Package costs shows what agents used: the command for a project, and for show the attempts of an
// intent, one by one.
package costs

import (
	"context"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
	"github.com/pfl-forge/pfl-forge/services/runner/report"
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

// Attempts returns every attempt of an intent that has ended, in that order. The journal is folded,
// so that an attempt counts here exactly if it counts for the rules.
func Attempts(ctx context.Context, t *target.Target, id forge.IntentID) ([]AttemptDetail, error) {
	key := t.Key(id)
	records, _, err := t.Bus.Journal.Load(ctx, key)
	if err != nil {
		return nil, err
	}
	f := fold{machine: machine.New(key)}
	for i := range records {
		for j := range records[i].Events {
			f.event(rules.Of(&records[i]), &records[i].Events[j])
		}
	}
	return f.ended, nil
}

// fold is a journal that is being read.
type fold struct {
	machine machine.Machine
	ended   []AttemptDetail
}

// event applies an event, and takes the attempt that ended with it. One that is reported twice, or
// too late and cost nothing, is none.
func (f *fold) event(by rules.Version, ev *forge.Event) {
	before := f.machine.Summary()
	f.machine.Step(by, *ev)
	after := f.machine.Summary()
	counted := after.Usage != before.Usage
	switch m := ev.Message.(type) {
	case *forge.RunReflected: // the result is the project's
		if s := &m.Step; counted {
			f.add(ev.At, s, s.Outcome)
		}
	case *forge.Result:
		wanted := before.Wants(m.Attempt)
		if m.IsStart() || !wanted && !counted {
			return
		}
		s := forge.StepRecord{
			Step: m.Attempt.Step, TaskID: m.Attempt.Task, Attempt: m.Attempt.Number, Duration: m.Duration, Session: m.Session, Agent: m.Agent,
			Model: m.Model, Executor: m.Executor, Usage: m.Usage,
		}
		outcome := report.Outcome(m)
		if !wanted {
			outcome = "unwanted"
		}
		f.add(ev.At, &s, outcome)
	default:
	}
}

// add adds an attempt that ended.
func (f *fold) add(at time.Time, s *forge.StepRecord, outcome string) {
	u := &s.Usage
	f.ended = append(f.ended, AttemptDetail{
		Task: s.TaskID, Step: s.Step, Attempt: s.Attempt, Outcome: outcome, Agent: s.Agent, Model: s.Model, Session: s.Session, Executor: s.Executor,
		Seconds: s.Duration.Seconds(), InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens, Turns: u.Turns, CostUSD: u.CostUSD, EndedAt: at,
	})
}

// PrintAttempts prints attempts as a table.
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
