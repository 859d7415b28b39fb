// Package transcript keeps what happens in an attempt, line by line as NDJSON, for
// people: on the bus, where the command line reads it, in files, and when the attempt has
// ended, as a whole in the object store.
package transcript

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Line is one thing that happened in an attempt. Its texts are safe to show and hold no secret.
type Line struct {
	At      time.Time          `json:"at"                yaml:"at"`
	Project forge.ProjectID    `json:"project"           yaml:"project"`
	Intent  forge.IntentID     `json:"intent"            yaml:"intent"`
	Task    forge.TaskID       `json:"task,omitempty"    yaml:"task,omitempty"`
	Step    forge.Step         `json:"step,omitempty"    yaml:"step,omitempty"`
	Attempt int                `json:"attempt,omitempty" yaml:"attempt,omitempty"`
	Claim   int                `json:"claim,omitempty"   yaml:"claim,omitempty"` // of two claims of an attempt, only the newer one counts
	Replica forge.ReplicaID    `json:"replica,omitempty" yaml:"replica,omitempty"`
	Kind    forge.ProgressKind `json:"kind"              yaml:"kind"`
	Agent   string             `json:"agent,omitempty"   yaml:"agent,omitempty"`
	Text    string             `json:"text,omitempty"    yaml:"text,omitempty"` // of ended: the outcome
	Usage   *Usage             `json:"usage,omitempty"   yaml:"usage,omitempty"`
}

// Usage is what an attempt used until then.
type Usage struct {
	InputTokens      int64   `json:"input_tokens"       yaml:"input_tokens"`
	OutputTokens     int64   `json:"output_tokens"      yaml:"output_tokens"`
	CacheReadTokens  int64   `json:"cache_read_tokens"  yaml:"cache_read_tokens"`
	CacheWriteTokens int64   `json:"cache_write_tokens" yaml:"cache_write_tokens"`
	CostUSD          float64 `json:"cost_usd"           yaml:"cost_usd"`
	Turns            int64   `json:"turns"              yaml:"turns"`
	Calls            int64   `json:"calls"              yaml:"calls"`
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

// encode returns a line of NDJSON.
func (l *Line) encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return nil // it holds nothing that cannot be encoded but a NaN of a cost
	}
	return b.Bytes()
}

// Parse returns the lines of an NDJSON text. What is no line is left out.
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
