package jobs

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// sink returns a function that turns an agent's events into progress of the attempt.
// name is the agent's; empty for commands of pfl-forge.yaml.
func (j *Job) sink(name string) func(agent.Event) {
	return func(e agent.Event) {
		p := forge.Progress{Kind: forge.ProgressText, Text: e.Text, Agent: name, Usage: e.Usage}
		switch e.Kind {
		case agent.EventStarted:
			p.Text = begun(e)
		case agent.EventThinking:
			p.Kind = forge.ProgressThinking
		case agent.EventTool:
			p.Kind, p.Text = forge.ProgressTool, e.Tool+" "+e.Text
		case agent.EventToolFailed:
			p.Kind, p.Text = forge.ProgressTool, e.Tool+" failed: "+e.Text
		case agent.EventUsage:
			p.Kind = forge.ProgressUsage
		case agent.EventWaiting:
			p.Kind = forge.ProgressLimit
			if !e.Until.IsZero() {
				p.Text += ", until " + e.Until.UTC().Format(time.RFC3339)
			}
		case agent.EventCompacting:
			p.Text = "the conversation is too long and is being shortened"
		case agent.EventOutput:
			p.Kind = forge.ProgressOutput
		case agent.EventText:
		}
		j.progress(p)
	}
}

// begun returns the line that a call begins with: model and session, as far as the
// agent reports them.
func begun(e agent.Event) string {
	text := "began"
	if e.Model != "" {
		text = "runs " + e.Model
	}
	if e.Session != "" {
		text += ", session " + e.Session
	}
	return text
}
