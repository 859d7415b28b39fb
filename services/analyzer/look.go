package analyzer

import (
	"context"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// audit has the agent report on the project. Each finding is also an observation.
func audit(ctx context.Context, j *jobs.Job) error {
	var found forge.Audit
	err := look(ctx, j, agent.RoleAudit, func(answer []byte, dir string) error {
		a, err := agent.ParseAudit(answer)
		if err != nil {
			return err
		}
		j.Observe(findings(j, dir, &a), time.Now())
		found = a
		return nil
	})
	if err != nil {
		return err
	}
	j.Result.Output = &found
	j.Result.Policy = jobs.PolicyOf(j)
	return nil
}

// findings removes findings without an existing place from an audit, and returns the
// others as observations.
func findings(j *jobs.Job, dir string, a *forge.Audit) []forge.Observation {
	var list []forge.Observation
	for i := range a.Areas {
		area := &a.Areas[i]
		var kept []forge.Finding
		for _, f := range area.Findings {
			if f.Evidence = existing(dir, j.Places(f.Evidence)); len(f.Evidence) == 0 {
				continue
			}
			kept = append(kept, f)
			list = append(list, forge.Observation{
				Content:  fmt.Sprintf("%s (%s): %s\n%s", area.Name, f.Severity, f.Title, f.Detail),
				Evidence: f.Evidence,
			})
		}
		if n := len(area.Findings) - len(kept); n > 0 {
			area.Summary += fmt.Sprintf(" (Left out, because no place that they name exists: %d.)", n)
		}
		area.Findings = kept
	}
	return list
}

// patterns has the agent find what recurs in the project's history.
func patterns(ctx context.Context, j *jobs.Job) error {
	var found forge.Observed
	err := look(ctx, j, agent.RoleObserve, func(answer []byte, dir string) error {
		o, observations, err := agent.ParseObserved(answer)
		if err != nil {
			return err
		}
		j.Observe(observations, time.Now())
		found = seenTwice(j, dir, o)
		return nil
	})
	if err != nil {
		return err
	}
	j.Result.Output = &found
	j.Result.Policy = jobs.PolicyOf(j)
	return nil
}

// seenTwice removes the patterns that are not seen in two existing places.
func seenTwice(j *jobs.Job, dir string, o forge.Observed) forge.Observed {
	var kept []forge.Pattern
	for _, p := range o.Patterns {
		if p.Evidence = existing(dir, j.Places(p.Evidence)); len(p.Evidence) > 1 {
			kept = append(kept, p)
		}
	}
	if len(o.Patterns) > 0 && len(kept) == 0 {
		o.NothingFound = fmt.Sprintf("of %d patterns, none can be seen in two places that exist", len(o.Patterns))
	}
	o.Patterns = kept
	return o
}

// look makes a call that only a model can answer.
func look(ctx context.Context, j *jobs.Job, role agent.Role, take answerFunc) error {
	if err := j.NeedModel(); err != nil {
		return err
	}
	return ask(ctx, j, agent.Call{Role: role, Schema: agent.Spec(role).Schema}, nil, take)
}
