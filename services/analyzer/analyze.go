package analyzer

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// analyze has the intent's agent make a plan; for the step architect, a second plan
// with a stronger model. A command that only asks for the policy calls no agent.
func (a *Analyzer) analyze(ctx context.Context, j *jobs.Job) error {
	answer := forge.Analysis{}
	if !j.Command.Analyze().PolicyOnly {
		err := ask(ctx, j, analysisCall(j), a.active, func(said []byte, dir string) error {
			parsed, observations, err := agent.ParseAnalysis(said)
			if err != nil {
				return err
			}
			for i := range parsed.Tasks {
				parsed.Tasks[i].RelevantFiles = inRepository(dir, parsed.Tasks[i].RelevantFiles)
			}
			j.Observe(observations, time.Now())
			answer = parsed
			return nil
		})
		if err != nil {
			return err
		}
	}
	answer.Base = string(j.Tip)
	answer.Policy = jobs.PolicyOf(j)
	j.Result.Output = &answer
	return nil
}

// analysisCall returns the call for the command's step. The answer may not ask for an
// architect if it is one, nor divide the request into children beyond the project's
// depth.
func analysisCall(j *jobs.Job) agent.Call {
	call := agent.Call{Role: agent.RoleAnalyze, Schema: agent.AnalysisSchema}
	if j.Command.Attempt.Step == forge.StepArchitect {
		call.Role, call.Schema = agent.RoleArchitect, agent.ArchitectSchema
	}
	if mayTakeApart(j.Command, j.Config) {
		return call
	}
	call.Schema = agent.SchemaWithout(call.Schema, "children")
	call.Check = func(answer []byte) error {
		a, _, err := agent.ParseAnalysis(answer)
		if err == nil && len(a.Children) > 0 {
			err = agent.Fail(forge.FailInvalidOutput, "the agent's answer: has children, but the request is not to be taken apart any further; plan its tasks")
		}
		return err
	}
	return call
}
