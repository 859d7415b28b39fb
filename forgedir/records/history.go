package records

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// HistoryDoc is the content of knowledge/history/<intent>-<run>.yaml.
type HistoryDoc struct {
	IntentID string `schema:"intent" yaml:"intent_id"`
	// Run counts the runs of the intent from 1.
	Run int `yaml:"run"`
	// IntentType is a type such as feature, fix or audit.
	IntentType string `schema:"type" yaml:"intent_type"`
	IntentRisk string `schema:"Risk" yaml:"intent_risk"`
	// Source says where the intent came from.
	Source string `schema:"Source" yaml:"source"`
	// Title is the intent's.
	Title string  `yaml:"title"`
	Flow  flowDoc `yaml:"flow"`
	// StepResults has every attempt of every step.
	StepResults   []stepDoc        `yaml:"step_results"`
	Outcome       string           `schema:"Outcome"                yaml:"outcome"`
	FailureReason string           `yaml:"failure_reason,omitempty"`
	Observations  []ObservationDoc `yaml:"observations"`
	StartedAt     *time.Time       `yaml:"started_at,omitempty"`
	// CreatedAt is the end of the run.
	CreatedAt time.Time `yaml:"created_at"`
}

// flowDoc describes the course of a run.
type flowDoc struct {
	// Steps are those that ran, in their order, each once.
	Steps []string `schema:"Step" yaml:"steps"`
	// Adjustments are the places where the runner left the template.
	Adjustments []adjustmentDoc `yaml:"adjustments"`
}

// adjustmentDoc is a change of the course, and the rule behind it.
type adjustmentDoc struct {
	// Rule is the name of the rule that made the change.
	Rule string `yaml:"rule"`
	// TaskID is empty if the change is of the whole intent.
	TaskID string    `schema:"task"           yaml:"task_id,omitempty"`
	Detail string    `yaml:"detail,omitempty"`
	At     time.Time `yaml:"at"`
}

// stepDoc is one attempt of a step.
type stepDoc struct {
	Step string `schema:"Step" yaml:"step"`
	// TaskID is empty for steps of the whole intent.
	TaskID string `schema:"task" yaml:"task_id,omitempty"`
	// Attempt counts from 1.
	Attempt int `yaml:"attempt"`
	// Outcome is ok, rejected, conflict, or the kind of failure.
	Outcome  string        `yaml:"outcome"`
	Duration time.Duration `yaml:"duration"`
	// Agent is the name of the back end.
	Agent string `yaml:"agent,omitempty"`
	Model string `yaml:"model,omitempty"`
	// Executor is where the attempt's agent, recipe and commands ran: pods, namespaces or none.
	Executor string `schema:"Executor" yaml:"executor,omitempty"`
	// SessionID is the agent's.
	SessionID string   `yaml:"session_id,omitempty"`
	Usage     usageDoc `yaml:",inline"`
	// At is the end of the attempt.
	At time.Time `yaml:"at"`
}

// usageDoc is the consumption of agents.
type usageDoc struct {
	InputTokens      int64   `yaml:"input_tokens,omitempty"`
	OutputTokens     int64   `yaml:"output_tokens,omitempty"`
	CacheReadTokens  int64   `yaml:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64   `yaml:"cache_write_tokens,omitempty"`
	CostUSD          float64 `yaml:"cost_usd,omitempty"`
	Turns            int64   `yaml:"turns,omitempty"`
	Calls            int64   `yaml:"calls,omitempty"`
}

// historyDocOf returns the file of a finished run, with all times in UTC.
func historyDocOf(h *forge.History) HistoryDoc {
	d := HistoryDoc{
		IntentID: string(h.IntentID), Run: h.Run, IntentType: h.IntentType, IntentRisk: string(h.IntentRisk),
		Source: string(h.Source), Title: h.Title,
		Flow:        flowDoc{Steps: texts(h.Flow), Adjustments: []adjustmentDoc{}},
		StepResults: []stepDoc{}, Outcome: string(h.Outcome), FailureReason: h.FailureReason,
		Observations: observationDocs(h.Observations), CreatedAt: h.CreatedAt.UTC(),
	}
	if !h.StartedAt.IsZero() {
		d.StartedAt = new(h.StartedAt.UTC())
	}
	for i := range h.Adjustments {
		a := &h.Adjustments[i]
		d.Flow.Adjustments = append(d.Flow.Adjustments, adjustmentDoc{a.Rule, string(a.TaskID), a.Detail, a.At.UTC()})
	}
	for i := range h.StepResults {
		d.StepResults = append(d.StepResults, stepDocOf(&h.StepResults[i]))
	}
	return d
}

// stepDocOf rounds the duration to milliseconds.
func stepDocOf(s *forge.StepRecord) stepDoc {
	return stepDoc{
		Step: string(s.Step), TaskID: string(s.TaskID), Attempt: s.Attempt, Outcome: s.Outcome,
		Duration: s.Duration.Round(time.Millisecond), Agent: s.Agent, Model: s.Model, Executor: string(s.Executor), SessionID: s.Session,
		Usage: usageDoc(s.Usage), At: s.At.UTC(),
	}
}
