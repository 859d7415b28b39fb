package analyzer

import (
	"context"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/repository"
	"github.com/pfl-forge/pfl-forge/service"
)

func (a *Analyzer) analyze(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
	return a.repos.Do(ctx, &cmd, progress, analyze)
}

// analyze asks the intent's agent, at the tip of the base branch.
func analyze(ctx context.Context, j *repository.Job) error {
	answer := forge.Analysis{}
	if !j.Command.PolicyOnly {
		out, dir, err := ask(ctx, j)
		if err != nil {
			return err
		}
		var observations []forge.Observation
		if answer, observations, err = agent.ParseAnalysis(out.Answer); err != nil {
			return err
		}
		for i := range answer.Tasks {
			answer.Tasks[i].RelevantFiles = inRepository(dir, answer.Tasks[i].RelevantFiles)
		}
		j.Observe(observations, time.Now())
	}
	answer.Base = string(j.Tip)
	answer.Policy = repository.Policy(j.Config)
	j.Result.Analysis = &answer
	return nil
}

// ask has the agent answer, and returns the directory that it saw.
func ask(ctx context.Context, j *repository.Job) (out agent.Outcome, dir string, err error) {
	call := agent.Call{
		Role:     agent.RoleAnalyze,
		StateDir: j.StateDir(repository.AnalysisName(j.Command.To.Intent)),
		Schema:   agent.AnalysisSchema,
	}
	recipe, err := j.IsRecipe()
	if err != nil {
		return out, "", err
	}
	if reads(j, recipe) {
		view, done, err := j.View(ctx, string(forge.StepAnalyze), j.Tip)
		if err != nil {
			return out, "", err
		}
		defer done()
		call.Dir, call.Env = view.Dir(), view.Env()
	}
	if recipe {
		out, err = j.Run(ctx, call)
		return out, call.Dir, err
	}
	out, err = converse(ctx, j, call)
	return out, call.Dir, err
}

// converse makes the call in the intent's conversation, which any replica goes on with.
// Where it is gone, one begins anew, with everything that was answered so far.
func converse(ctx context.Context, j *repository.Job, call agent.Call) (agent.Outcome, error) {
	if _, err := j.FetchSession(ctx, call.StateDir); err != nil {
		return agent.Outcome{}, err
	}
	defer j.SaveSession(ctx, call.StateDir, nil)
	return j.Converse(ctx, call, repository.Conversation{
		Prompts: func(o repository.Opening) (system, text string, err error) {
			return prompts(j.Command, j.Config.Verify, o == repository.OpenResume)
		},
	})
}

// reads reports whether the analysis looks at files: of recipes only those do whose
// tasks depend on what is there.
func reads(j *repository.Job, recipe bool) bool {
	if !recipe {
		return true
	}
	r, ok := j.Recipe()
	return ok && r.Each != ""
}
