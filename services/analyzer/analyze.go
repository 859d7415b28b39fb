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
	cmd := j.Command
	call := agent.Call{
		Role:     agent.RoleAnalyze,
		StateDir: j.StateDir(repository.AnalysisName(cmd.To.Intent)),
		Schema:   agent.AnalysisSchema,
		Session:  agent.Session{ID: cmd.Session, Resume: cmd.Session != ""},
	}
	recipe, err := j.IsRecipe()
	if err != nil {
		return err
	}
	if !recipe {
		if call.System, call.Prompt, err = prompts(cmd); err != nil {
			return err
		}
	}
	if reads(j, recipe) {
		view, done, err := j.View(ctx, string(forge.StepAnalyze), j.Tip)
		if err != nil {
			return err
		}
		defer done()
		call.Dir, call.Env = view.Dir(), view.Env()
	}
	out, err := j.Run(ctx, call)
	if err != nil {
		return err
	}
	answer, observations, err := agent.ParseAnalysis(out.Answer)
	if err != nil {
		return err
	}
	answer.Base = string(j.Tip)
	answer.Policy = repository.Policy(j.Config)
	j.Result.Analysis = &answer
	j.Observe(observations, time.Now())
	return nil
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
