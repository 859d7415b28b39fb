package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// Attempt is an attempt under way with what it has used so far, as programs read it.
type Attempt struct {
	Task         forge.TaskID `json:"task,omitempty"  yaml:"task,omitempty"` // empty: of the whole intent
	Step         forge.Step   `json:"step"            yaml:"step"`
	Attempt      int          `json:"attempt"         yaml:"attempt"`
	Agent        string       `json:"agent,omitempty" yaml:"agent,omitempty"`
	Tokens       int64        `json:"tokens"          yaml:"tokens"`
	CachedTokens int64        `json:"cached_tokens"   yaml:"cached_tokens"`
	CostUSD      float64      `json:"cost_usd"        yaml:"cost_usd"`
	Last         string       `json:"last,omitempty"  yaml:"last,omitempty"` // the last text of its transcript
}

// RunningAttempt returns the attempt that the last lines of its transcript tell of, and nil
// if it has ended or not begun.
func RunningAttempt(a forge.Attempt, lines []transcript.Line) *Attempt {
	r := &Attempt{Task: a.Task, Step: a.Step, Attempt: a.Number}
	for i := range lines {
		l := &lines[i]
		if l.Agent != "" {
			r.Agent = l.Agent
		}
		if l.Usage != nil {
			u := forge.Usage(*l.Usage)
			r.Tokens, r.CachedTokens, r.CostUSD = render.Fresh(&u), render.Cached(&u), u.CostUSD
		}
		if l.Text != "" {
			r.Last = l.Text
		}
	}
	if len(lines) == 0 || lines[len(lines)-1].Kind == forge.ProgressEnded {
		return nil
	}
	return r
}

// String returns the attempt as a line below its intent in a list.
func (r *Attempt) String() string {
	parts := []string{render.StepName(forge.Attempt{Step: r.Step, Number: r.Attempt}), term.Line(r.Agent)}
	parts = append(parts, render.Consumed(r.Tokens, r.CachedTokens, r.CostUSD), term.Short(r.Last, 80))
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return fmt.Sprintf("%-24s  %s", r.Task, strings.Join(said, "  "))
}
