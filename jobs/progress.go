package jobs

import "github.com/pfl-forge/pfl-forge/agent"

// sink returns a function that reports an agent's events as progress of the attempt.
// name is the agent's; empty for commands of pfl-forge.yaml.
func (j *Job) sink(name string) func(agent.Event) {
	return func(e agent.Event) { j.progress(e.Progress(name)) }
}
