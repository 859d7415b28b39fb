package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	model "github.com/pfl-forge/pfl-forge/document"
)

// pastRun is a finished run of an intent in a list, as programs read it.
type pastRun struct {
	Intent forge.IntentID `json:"intent" yaml:"intent"`

	// Run counts the runs of the intent from 1: each retry begins another one.
	Run    int          `json:"run"            yaml:"run"`
	Title  string       `json:"title"          yaml:"title"`
	Type   string       `json:"type,omitempty" yaml:"type,omitempty"`
	Risk   forge.Risk   `json:"risk,omitempty" yaml:"risk,omitempty"`
	Source forge.Source `json:"source"         yaml:"source"`

	// Outcome is the end of the run, and Reason explains one that is no success.
	Outcome     forge.Outcome `json:"outcome"          yaml:"outcome"`
	Reason      string        `json:"reason,omitempty" yaml:"reason,omitempty"`
	Steps       int           `json:"steps"            yaml:"steps"`       // attempts that were decided on
	Adjustments int           `json:"adjustments"      yaml:"adjustments"` // changes of the flow

	// Agents are the back ends that worked in it, each once; Tokens to CostUSD add up
	// all attempts.
	Agents       []string `json:"agents,omitempty" yaml:"agents,omitempty"`
	Tokens       int64    `json:"tokens"           yaml:"tokens"`
	CachedTokens int64    `json:"cached_tokens"    yaml:"cached_tokens"`
	CostUSD      float64  `json:"cost_usd"         yaml:"cost_usd"`

	// Seconds is the time from the begin of its first attempt to its end.
	Seconds   float64   `json:"seconds"    yaml:"seconds"`
	StartedAt time.Time `json:"started_at" yaml:"started_at"`
	EndedAt   time.Time `json:"ended_at"   yaml:"ended_at"`
}

// pastDetail is one finished run, as programs read it.
type pastDetail struct {
	pastRun `yaml:",inline"`

	document.Trace `yaml:",inline"`

	// Goal is the progress of a goal. It is set for the newest run only, and nil for an intent
	// without criteria.
	Goal *model.GoalProgress `json:"goal,omitempty" yaml:"goal,omitempty"`
	Flow []forge.Step        `json:"flow"           yaml:"flow"` // in order, each once

	// Timeline has the attempts and adjustments in the order of time; of what was decided
	// together, the attempt comes before what followed from it.
	Timeline []happened `json:"timeline" yaml:"timeline"`

	// Observations are things that agents noticed beside their work in this run.
	Observations []observation `json:"observations,omitempty" yaml:"observations,omitempty"`
}

// happened is an entry of a timeline: an attempt, or if it has a Rule an adjustment of the
// flow.
type happened struct {
	At time.Time `json:"at" yaml:"at"`

	// Task is the task that it is about; empty if it is about the whole intent.
	Task forge.TaskID `json:"task,omitempty" yaml:"task,omitempty"`

	// Step to CostUSD describe an attempt: its name, outcome, agent and usage.
	// Outcome is ok, rejected, another verdict, or the name of a failure.
	Step         forge.Step `json:"step,omitempty"          yaml:"step,omitempty"`
	Attempt      int        `json:"attempt,omitempty"       yaml:"attempt,omitempty"`
	Outcome      string     `json:"outcome,omitempty"       yaml:"outcome,omitempty"`
	Seconds      float64    `json:"seconds,omitempty"       yaml:"seconds,omitempty"`
	Agent        string     `json:"agent,omitempty"         yaml:"agent,omitempty"`
	Model        string     `json:"model,omitempty"         yaml:"model,omitempty"`
	Session      string     `json:"session,omitempty"       yaml:"session,omitempty"`
	Tokens       int64      `json:"tokens,omitempty"        yaml:"tokens,omitempty"`
	CachedTokens int64      `json:"cached_tokens,omitempty" yaml:"cached_tokens,omitempty"`
	CostUSD      float64    `json:"cost_usd,omitempty"      yaml:"cost_usd,omitempty"`

	// Executor is the weakest that the attempt's agent, recipe and commands had, as its worker
	// said: pods, namespaces or none; empty if none of these ran.
	Executor forge.Executor `json:"executor,omitempty" yaml:"executor,omitempty"`

	// Rule to Detail are of an adjustment: the name of the rule behind it, what that rule
	// does, and what it did here.
	Rule   string `json:"rule,omitempty"   yaml:"rule,omitempty"`
	Means  string `json:"means,omitempty"  yaml:"means,omitempty"` // what the rule does
	Detail string `json:"detail,omitempty" yaml:"detail,omitempty"`
}

// observation is something that an agent noticed.
type observation struct {
	Content string `json:"content" yaml:"content"`
	Source  string `json:"source"  yaml:"source"`

	// Evidence has entries such as "file: main.go".
	Evidence  []string `json:"evidence,omitempty" yaml:"evidence,omitempty"`
	Processed bool     `json:"processed"          yaml:"processed"` // a reflection has read it
}

// nameOf returns the line of a finished run with -o name.
func nameOf(r *pastRun) string { return fmt.Sprintf("%s\t%d", r.Intent, r.Run) }

// pastRunOf returns a finished run as a list has it. The begin is that of the earliest
// attempt: its end less its duration. A run without attempts began when it ended.
func pastRunOf(h *forge.History) pastRun {
	r := pastRun{
		Intent: h.IntentID, Run: h.Run, Title: h.Title, Type: h.IntentType, Risk: h.IntentRisk, Source: h.Source,
		Outcome: h.Outcome, Reason: h.FailureReason, Steps: len(h.StepResults), Adjustments: len(h.Adjustments),
		StartedAt: h.CreatedAt, EndedAt: h.CreatedAt,
	}
	for i := range h.StepResults {
		s := &h.StepResults[i]
		r.Tokens += render.Fresh(&s.Usage)
		r.CachedTokens += render.Cached(&s.Usage)
		r.CostUSD += s.Usage.CostUSD
		if began := s.At.Add(-s.Duration); began.Before(r.StartedAt) {
			r.StartedAt = began
		}
		if s.Agent != "" && !slices.Contains(r.Agents, s.Agent) {
			r.Agents = append(r.Agents, s.Agent)
		}
	}
	r.Seconds = r.EndedAt.Sub(r.StartedAt).Seconds()
	return r
}

// pastDetailOf returns everything about a finished run.
// Trace and Goal are the caller's to fill in.
func pastDetailOf(h *forge.History) pastDetail {
	d := pastDetail{pastRun: pastRunOf(h), Flow: h.Flow, Timeline: timelineOf(h)}
	for i := range h.Observations {
		d.Observations = append(d.Observations, observationOf(&h.Observations[i]))
	}
	return d
}

// observationOf returns something that an agent noticed.
func observationOf(o *forge.Observation) observation {
	out := observation{Content: o.Content, Source: string(o.Source), Processed: o.Processed}
	for _, e := range o.Evidence {
		out.Evidence = append(out.Evidence, string(e.Type)+": "+e.Ref)
	}
	return out
}

// timelineOf returns the attempts and adjustments of a run in the order of time; of
// what was decided together, the attempt comes before what followed from it.
// It is never nil.
func timelineOf(h *forge.History) []happened {
	list := []happened{}
	for i := range h.StepResults {
		s := &h.StepResults[i]
		list = append(list, happened{
			At: s.At, Task: s.TaskID, Step: s.Step, Attempt: s.Attempt, Outcome: s.Outcome, Seconds: s.Duration.Seconds(),
			Agent: s.Agent, Model: s.Model, Session: s.Session, Executor: s.Executor,
			Tokens: render.Fresh(&s.Usage), CachedTokens: render.Cached(&s.Usage), CostUSD: s.Usage.CostUSD,
		})
	}
	for i := range h.Adjustments {
		adj := &h.Adjustments[i]
		list = append(list, happened{At: adj.At, Task: adj.TaskID, Rule: adj.Rule, Means: render.Rule(adj.Rule), Detail: adj.Detail})
	}
	slices.SortStableFunc(list, func(a, b happened) int { return a.At.Compare(b.At) })
	return list
}

// sortRuns sorts finished runs, the newest first.
// Of the same time they are sorted by intent, and then the later run comes first.
func sortRuns(list []forge.History) {
	slices.SortFunc(list, func(a, b forge.History) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.IntentID, b.IntentID), cmp.Compare(b.Run, a.Run))
	})
}
