package analyzer

import (
	"context"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/goals"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// intake has the agent state a goal's task and criteria. Criteria that a person gave
// stay as they are.
func (a *Analyzer) intake(ctx context.Context, j *jobs.Job) error {
	taken := forge.Intake{}
	if !j.Command.Analyze().PolicyOnly {
		if err := j.NeedModel(); err != nil {
			return err
		}
		if _, err := goals.Commands(j.Config, j.Tip, j.Command.Intent.Checks); err != nil {
			return err
		}
		wanted, _ := verdict.Texts(j.Command.Intent.Criteria, j.Command.Intent.Checks)
		call := agent.Call{Role: agent.RoleIntake, Schema: agent.IntakeSchema, Check: func(answer []byte) error {
			_, _, err := agent.ParseIntake(answer, wanted)
			return err
		}}
		err := ask(ctx, j, call, a.active, func(answer []byte, dir string) error {
			in, observations, err := agent.ParseIntake(answer, wanted)
			if err != nil {
				return err
			}
			in.RelevantFiles = inRepository(dir, in.RelevantFiles)
			in.Task, in.Notes = strings.ReplaceAll(in.Task, dir+"/", ""), strings.ReplaceAll(in.Notes, dir+"/", "")
			j.Observe(observations, time.Now())
			taken = in
			return nil
		})
		if err != nil {
			return err
		}
	}
	j.Result.Output = &taken
	j.Result.Policy = jobs.PolicyOf(j)
	return nil
}
