package analyzer

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/sessions"
)

// answerFunc receives an answer while the directory that the agent saw still exists;
// dir is empty if it saw none.
type answerFunc func(answer []byte, dir string) error

// ask has the command's agent answer a call at the tip of the base branch. An agent
// reads a checkout; a recipe only if its tasks depend on the files. An agent is told of the
// active intents, unless active is nil.
func ask(ctx context.Context, j *jobs.Job, call agent.Call, active activeFunc, take answerFunc) error {
	step := j.Command.Attempt.Step
	call.StateDir = j.StateDir(jobs.StateName(j.Command.To.Intent, step))
	recipe, err := j.IsRecipe()
	if err != nil {
		return err
	}
	if reads(j, recipe) {
		view, done, err := j.View(ctx, string(step), j.Tip)
		if err != nil {
			return err
		}
		defer done()
		call.Dir, call.Env = view.Dir(), view.Env()
	}
	var out agent.Outcome
	if recipe {
		out, err = j.Run(ctx, call)
	} else {
		out, err = askInSession(ctx, j, call, active)
	}
	if err != nil {
		return err
	}
	return take(out.Answer, call.Dir)
}

// askInSession makes the call in the step's session, which any replica can resume. If
// it is lost, a new one begins with everything that was answered so far.
func askInSession(ctx context.Context, j *jobs.Job, call agent.Call, active activeFunc) (agent.Outcome, error) {
	var others []forge.Summary
	if active != nil {
		var err error
		if others, err = active(ctx, j); err != nil {
			return agent.Outcome{}, err
		}
	}
	if _, err := j.FetchSession(ctx, call.StateDir); err != nil {
		return agent.Outcome{}, err
	}
	defer j.SaveSession(ctx, call.StateDir, nil)
	return j.CallInSession(ctx, call, sessions.Call{
		Prompts: func(o sessions.Start) (system, text string, err error) {
			return prompts(j.Command, others, j.Config, o == sessions.Resumed)
		},
	})
}

// reads reports whether the call needs a checkout: of recipes only those whose tasks
// depend on the files.
func reads(j *jobs.Job, recipe bool) bool {
	if !recipe {
		return true
	}
	r, ok := j.Recipe()
	return ok && r.Each != ""
}
