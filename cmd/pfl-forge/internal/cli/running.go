package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// maxRunning bounds how many running attempts are looked at.
const maxRunning = 50

// running is an attempt under way, and what it has used so far, as programs read it.
type running struct {
	Task    forge.TaskID `json:"task,omitempty"  yaml:"task,omitempty"` // empty: of the whole intent
	Step    forge.Step   `json:"step"            yaml:"step"`
	Attempt int          `json:"attempt"         yaml:"attempt"`
	Agent   string       `json:"agent,omitempty" yaml:"agent,omitempty"`
	Tokens  int64        `json:"tokens"          yaml:"tokens"`
	CostUSD float64      `json:"cost_usd"        yaml:"cost_usd"`
	Last    string       `json:"last,omitempty"  yaml:"last,omitempty"` // what it told last
}

// running looks into the transcripts of attempts that are under way.
func (t *target) running(ctx context.Context, all []forge.Summary, list []item) error {
	left := maxRunning
	for i := range all {
		for _, a := range all[i].Open {
			if left--; left < 0 {
				return nil
			}
			like := bus.TranscriptFilter{
				Project: all[i].Key.Project, Intent: all[i].Key.Intent, Task: a.Task, Step: a.Step, Number: a.Number,
			}
			_, lines, err := t.bus.LastTranscript(ctx, like)
			if err != nil {
				return err
			}
			if r := runningOf(a, transcript.Parse(lines)); r != nil {
				list[i].Running = append(list[i].Running, *r)
			}
		}
	}
	return nil
}

// runningOf returns what the last lines of a transcript say, nil if it is over or not
// begun.
func runningOf(a forge.Attempt, lines []transcript.Line) *running {
	r := &running{Task: a.Task, Step: a.Step, Attempt: a.Number}
	for i := range lines {
		l := &lines[i]
		if l.Agent != "" {
			r.Agent = l.Agent
		}
		if l.Usage != nil {
			r.Tokens, r.CostUSD = l.Usage.InputTokens+l.Usage.OutputTokens, l.Usage.CostUSD
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

func (r *running) String() string {
	parts := []string{render.StepName(forge.Attempt{Step: r.Step, Number: r.Attempt}), term.Line(r.Agent)}
	parts = append(parts, render.Consumed(&forge.Usage{InputTokens: r.Tokens, CostUSD: r.CostUSD}), term.Short(r.Last, 80))
	var said []string
	for _, part := range parts {
		if part != "" {
			said = append(said, part)
		}
	}
	return fmt.Sprintf("%-24s  %s", r.Task, strings.Join(said, "  "))
}
