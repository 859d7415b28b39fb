package transcript

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Line is one entry of a transcript: a text of the agent, the use of a tool, a
// command, the beginning or the end of an attempt. Its texts are safe to show
// and hold no secret: whoever adds it has made sure of both.
type Line struct {
	// At is the time of the event.
	At time.Time `json:"at" yaml:"at"`
	// Project, Intent, Task, Step and Attempt say where. Task is empty for a step of the
	// whole intent.
	Project forge.ProjectID `json:"project"           yaml:"project"`
	Intent  forge.IntentID  `json:"intent"            yaml:"intent"`
	Task    forge.TaskID    `json:"task,omitempty"    yaml:"task,omitempty"`
	Step    forge.Step      `json:"step,omitempty"    yaml:"step,omitempty"`
	Attempt int             `json:"attempt,omitempty" yaml:"attempt,omitempty"`
	// Claim counts how often the attempt was given to a worker. Of two claims only the newer
	// one counts; lines of the older one may still come.
	Claim int `json:"claim,omitempty" yaml:"claim,omitempty"`
	// Replica is the worker.
	Replica forge.ReplicaID `json:"replica,omitempty" yaml:"replica,omitempty"`
	// Kind says what the line is: a text of the agent, a tool it used, the end and so on.
	Kind forge.ProgressKind `json:"kind" yaml:"kind"`
	// Agent is the back end, where one is at work.
	Agent string `json:"agent,omitempty" yaml:"agent,omitempty"`
	// Text has the agent's words, or says what was done. In the last line
	// (forge.ProgressEnded) it is the outcome: OutcomeOK or a reason.
	Text string `json:"text,omitempty" yaml:"text,omitempty"`
	// Usage is set in lines that report it.
	Usage *Usage `json:"usage,omitempty" yaml:"usage,omitempty"`
}

// Usage counts the tokens, money and calls of an attempt up to a line, all its
// calls together.
type Usage struct {
	InputTokens      int64 `json:"input_tokens"       yaml:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"      yaml:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens"  yaml:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens" yaml:"cache_write_tokens"`
	// CostUSD is in US dollars, an estimate where the back end reports no cost.
	CostUSD float64 `json:"cost_usd" yaml:"cost_usd"`
	// Turns counts answers of the model, and Calls runs of the agent's program.
	Turns int64 `json:"turns" yaml:"turns"`
	Calls int64 `json:"calls" yaml:"calls"`
}

// Of returns a progress message as a line.
func Of(p *forge.Progress) Line {
	l := Line{
		At: p.At, Project: p.To.Project, Intent: p.To.Intent, Task: p.Attempt.Task, Step: p.Attempt.Step,
		Attempt: p.Attempt.Number, Claim: p.Attempt.Claim, Replica: p.Replica, Kind: p.Kind, Agent: p.Agent, Text: p.Text,
	}
	if p.Usage != (forge.Usage{}) {
		u := Usage(p.Usage)
		l.Usage = &u
	}
	return l
}

// encode returns the line as NDJSON, with its line end. It returns nil if the
// cost is not a finite number, which JSON cannot hold.
func (l *Line) encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return nil
	}
	return b.Bytes()
}

// Parse returns the lines of an NDJSON text, in their order. It skips anything
// that does not parse, such as a line that was cut off when its process was
// killed.
func Parse(text []byte) []Line {
	var lines []Line
	for raw := range bytes.Lines(text) {
		var l Line
		if err := json.Unmarshal(raw, &l); err == nil {
			lines = append(lines, l)
		}
	}
	return lines
}
