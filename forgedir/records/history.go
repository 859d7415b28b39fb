package records

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// HistoryDoc is the content of knowledge/history/<intent>-<run>.yaml.
type HistoryDoc struct {
	IntentID      string           `schema:"intent"                 yaml:"intent_id"`
	Run           int              `yaml:"run"`                                         // of the intent, from 1
	IntentType    string           `schema:"type"                   yaml:"intent_type"` // such as feature, fix, audit
	IntentRisk    string           `schema:"Risk"                   yaml:"intent_risk"`
	Source        string           `schema:"Source"                 yaml:"source"` // where the intent came from
	Title         string           `yaml:"title"`                                  // of the intent
	Flow          flowDoc          `yaml:"flow"`
	StepResults   []stepDoc        `yaml:"step_results"` // every attempt of every step
	Outcome       string           `schema:"Outcome"                yaml:"outcome"`
	FailureReason string           `yaml:"failure_reason,omitempty"`
	Observations  []ObservationDoc `yaml:"observations"`
	StartedAt     *time.Time       `yaml:"started_at,omitempty"`
	CreatedAt     time.Time        `yaml:"created_at"` // when it ended
}

// flowDoc describes the course of a run.
type flowDoc struct {
	Steps       []string        `schema:"Step"      yaml:"steps"` // that ran, in their order, each once
	Adjustments []adjustmentDoc `yaml:"adjustments"`              // where the runner left the template
}

// adjustmentDoc is a change of the course, and the rule behind it.
type adjustmentDoc struct {
	Rule   string    `yaml:"rule"`                                      // its name
	TaskID string    `schema:"task"           yaml:"task_id,omitempty"` // empty: the whole intent
	Detail string    `yaml:"detail,omitempty"`
	At     time.Time `yaml:"at"`
}

// stepDoc is one attempt of a step.
type stepDoc struct {
	Step      string        `schema:"Step"               yaml:"step"`
	TaskID    string        `schema:"task"               yaml:"task_id,omitempty"` // empty: the whole intent
	Attempt   int           `yaml:"attempt"`                                       // from 1
	Outcome   string        `yaml:"outcome"`                                       // ok, rejected, conflict, or why it failed
	Duration  time.Duration `yaml:"duration"`
	Agent     string        `yaml:"agent,omitempty"` // the back end
	Model     string        `yaml:"model,omitempty"`
	SessionID string        `yaml:"session_id,omitempty"` // of the agent
	Usage     usageDoc      `yaml:",inline"`
	At        time.Time     `yaml:"at"` // when it ended
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
		Duration: s.Duration.Round(time.Millisecond), Agent: s.Agent, Model: s.Model, SessionID: s.Session,
		Usage: usageDoc(s.Usage), At: s.At.UTC(),
	}
}
