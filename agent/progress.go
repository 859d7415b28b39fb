package agent

import (
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Progress returns the event as a line of an attempt's progress, as people read
// it. name is the agent's; empty for commands of pfl-forge.yaml.
func (e *Event) Progress(name string) forge.Progress {
	p := forge.Progress{Kind: forge.ProgressText, Text: e.Text, Agent: name, Usage: e.Usage}
	switch e.Kind {
	case EventStarted:
		p.Text = begun(e)
	case EventThinking:
		p.Kind = forge.ProgressThinking
	case EventTool:
		p.Kind, p.Text = forge.ProgressTool, e.Tool+" "+e.Text
	case EventToolFailed:
		p.Kind, p.Text = forge.ProgressTool, e.Tool+" failed: "+e.Text
	case EventCommandEnded:
		p.Kind, p.Text = forge.ProgressTool, strings.TrimSuffix(e.Tool+" ended: "+e.Text, ": ")
	case EventUsage:
		p.Kind = forge.ProgressUsage
	case EventWaiting:
		p.Kind = forge.ProgressLimit
		if !e.Until.IsZero() {
			p.Text += ", until " + e.Until.UTC().Format(time.RFC3339)
		}
	case EventCompacting:
		p.Text = "the conversation is too long and is being shortened"
	case EventOutput:
		p.Kind = forge.ProgressOutput
	case EventText:
	}
	return p
}

// begun returns the line that a call begins with: model and session, as far as the
// agent reports them.
func begun(e *Event) string {
	text := "began"
	if e.Model != "" {
		text = "runs " + e.Model
	}
	if e.Session != "" {
		text += ", session " + e.Session
	}
	return text
}
