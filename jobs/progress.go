package jobs

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// sink returns a function that reports an agent's events as progress of the attempt.
// name is the agent's; empty for commands of pfl-forge.yaml.
func (j *Job) sink(name string) func(agent.Event) {
	return func(e agent.Event) { j.progress(e.Progress(name)) }
}

// Say reports a line of what the attempt does, for those who watch it.
func Say(j *Job, text string) { j.progress(forge.Progress{Kind: forge.ProgressText, Text: text}) }
