package analyzer

import (
	"context"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/repository"
)

// audit asks for a report on what the intent says. What was found is noticed as well.
func audit(ctx context.Context, j *repository.Job) error {
	var found forge.Audit
	if !j.Command.PolicyOnly {
		out, err := look(ctx, j, agent.RoleAudit)
		if err != nil {
			return err
		}
		if found, err = agent.ParseAudit(out.Answer); err != nil {
			return err
		}
		j.Observe(findings(j, &found), time.Now())
	}
	j.Result.Audit = &found
	j.Result.Policy = repository.Policy(j.Config)
	return nil
}

// findings puts the places of an audit's findings as they are named from the
// repository's root, and returns each finding as an observation.
func findings(j *repository.Job, a *forge.Audit) []forge.Observation {
	var list []forge.Observation
	for _, area := range a.Areas {
		for i := range area.Findings {
			f := &area.Findings[i]
			f.Evidence = j.Places(f.Evidence)
			list = append(list, forge.Observation{
				Content:  fmt.Sprintf("%s (%s): %s\n%s", area.Name, f.Severity, f.Title, f.Detail),
				Evidence: f.Evidence,
			})
		}
	}
	return list
}

// patterns asks for what comes back in the project's history.
func patterns(ctx context.Context, j *repository.Job) error {
	var found forge.Observed
	if !j.Command.PolicyOnly {
		out, err := look(ctx, j, agent.RoleObserve)
		if err != nil {
			return err
		}
		var observations []forge.Observation
		if found, observations, err = agent.ParseObserved(out.Answer); err != nil {
			return err
		}
		for i := range found.Patterns {
			found.Patterns[i].Evidence = j.Places(found.Patterns[i].Evidence)
		}
		j.Observe(observations, time.Now())
	}
	j.Result.Observed = &found
	j.Result.Policy = repository.Policy(j.Config)
	return nil
}

func look(ctx context.Context, j *repository.Job, role agent.Role) (agent.Outcome, error) {
	if err := j.NeedModel(); err != nil {
		return agent.Outcome{}, err
	}
	out, _, err := ask(ctx, j, agent.Call{Role: role, Schema: agent.Spec(role).Schema})
	return out, err
}
