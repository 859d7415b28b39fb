package reflection

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/session"
)

// Command tells a worker to reflect. It is a command of the first run's intent.
func (r *Reflection) Command(project forge.ProjectID) forge.Command {
	first := r.Runs[0]
	in := &forge.ReflectInput{History: &first.On.History, Observations: r.Observations, Proposed: r.Known}
	for _, run := range r.Runs[1:] {
		in.Histories = append(in.Histories, run.On.History)
	}
	c := forge.Command{
		To:            forge.Key{Project: project, Intent: first.Intent},
		Attempt:       r.Attempt(),
		Intent:        first.On.Intent,
		Input:         in,
		BudgetUSD:     r.BudgetUSD,
		LimitedAgents: r.Avoid,
	}
	if first.On.Intent.Recipe == "" {
		c.Session = session.NewID(c.To, first.On.Intent.CreatedAt, "", forge.StepReflect, r.Number)
	}
	return c
}
