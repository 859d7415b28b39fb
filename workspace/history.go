package workspace

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// historyDoc is knowledge/history/<intent>-<run>.yaml.
type historyDoc struct {
	IntentID      string           `yaml:"intent_id"`
	Run           int              `yaml:"run"`
	IntentType    string           `yaml:"intent_type"`
	IntentRisk    string           `yaml:"intent_risk"`
	Source        string           `yaml:"source"`
	Title         string           `yaml:"title"`
	Flow          flowDoc          `yaml:"flow"`
	StepResults   []stepDoc        `yaml:"step_results"`
	Outcome       string           `yaml:"outcome"`
	FailureReason string           `yaml:"failure_reason,omitempty"`
	Observations  []observationDoc `yaml:"observations"`
	CreatedAt     time.Time        `yaml:"created_at"`
}

type flowDoc struct {
	Steps       []string        `yaml:"steps"`
	Adjustments []adjustmentDoc `yaml:"adjustments"`
}

type adjustmentDoc struct {
	Rule   string    `yaml:"rule"`
	TaskID string    `yaml:"task_id,omitempty"`
	Detail string    `yaml:"detail,omitempty"`
	At     time.Time `yaml:"at"`
}

type stepDoc struct {
	Step      string        `yaml:"step"`
	TaskID    string        `yaml:"task_id,omitempty"`
	Attempt   int           `yaml:"attempt"`
	Outcome   string        `yaml:"outcome"`
	Duration  time.Duration `yaml:"duration"`
	Agent     string        `yaml:"agent,omitempty"`
	Model     string        `yaml:"model,omitempty"`
	SessionID string        `yaml:"session_id,omitempty"`
	Usage     usageDoc      `yaml:",inline"`
	At        time.Time     `yaml:"at"`
}

type usageDoc struct {
	InputTokens      int64   `yaml:"input_tokens,omitempty"`
	OutputTokens     int64   `yaml:"output_tokens,omitempty"`
	CacheReadTokens  int64   `yaml:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64   `yaml:"cache_write_tokens,omitempty"`
	CostUSD          float64 `yaml:"cost_usd,omitempty"`
	Turns            int64   `yaml:"turns,omitempty"`
	Calls            int64   `yaml:"calls,omitempty"`
}

func usageDocOf(u forge.Usage) usageDoc {
	return usageDoc{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
		CostUSD: u.CostUSD, Turns: u.Turns, Calls: u.Calls,
	}
}

func historyDocOf(h *forge.History) historyDoc {
	d := historyDoc{
		IntentID: string(h.IntentID), Run: h.Run, IntentType: h.IntentType, IntentRisk: string(h.IntentRisk),
		Source: string(h.Source), Title: h.Title,
		Flow:        flowDoc{Steps: texts(h.Flow), Adjustments: []adjustmentDoc{}},
		StepResults: []stepDoc{}, Outcome: string(h.Outcome), FailureReason: h.FailureReason,
		Observations: observationDocs(h.Observations), CreatedAt: h.CreatedAt.UTC(),
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

func stepDocOf(s *forge.StepRecord) stepDoc {
	return stepDoc{
		Step: string(s.Step), TaskID: string(s.TaskID), Attempt: s.Attempt, Outcome: s.Outcome,
		Duration: s.Duration.Round(time.Millisecond), Agent: s.Agent, Model: s.Model, SessionID: s.Session,
		Usage: usageDocOf(s.Usage), At: s.At.UTC(),
	}
}
