package reflector

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/slug"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// reflect has the agent propose intents. Without a model, or when no model did or
// noticed anything, it reports everything as read and proposes nothing. If reflection
// is off it does not even do that: the sender does not know that it is off after a
// run whose analysis failed.
func reflect(ctx context.Context, j *jobs.Job) error {
	if !j.Config.Reflection.Enabled {
		j.Result.Output = &forge.Reflection{}
		return nil
	}
	recipe, err := j.IsRecipe()
	if err != nil {
		return err
	}
	if recipe || !worthwhile(j.Command) {
		j.Result.Output = &forge.Reflection{Read: ids(j.Command.Reflect().Observations)}
		return nil
	}
	l := newReflectionData(j.Command, j.Config.Reflection.ProposalsATime)
	var dir string
	out, err := ask(ctx, j, agent.Call{Role: agent.RoleReflect}, func(d string) (system, text string, err error) {
		dir = d
		return render(reflectPrompt, l)
	})
	if err != nil {
		return err
	}
	proposals, observations, err := agent.ParseReflection(out.Answer)
	if err != nil {
		return err
	}
	for i := range proposals {
		proposals[i].Body = strings.ReplaceAll(proposals[i].Body, dir+"/", "")
		if title := proposals[i].Title; slug.Foreign(title) { // flow itself spells ASCII only
			proposals[i].ID = forge.IntentID(slug.Make(title))
		}
	}
	j.Observe(observations, time.Now())
	j.Result.Output = &forge.Reflection{Proposals: proposals, Read: l.read()}
	return nil
}

// worthwhile reports whether a model did or noticed anything.
func worthwhile(cmd *forge.Command) bool {
	if len(cmd.Reflect().Observations) > 0 {
		return true
	}
	for _, h := range histories(cmd) {
		if slices.ContainsFunc(h.StepResults, func(s forge.StepRecord) bool { return s.Agent != "" && s.Agent != config.AgentRecipe }) {
			return true
		}
	}
	return false
}

// histories returns the runs of the command, the one that ended last first.
func histories(cmd *forge.Command) []forge.History {
	in := cmd.Reflect()
	if in.History == nil {
		return in.Histories
	}
	return append([]forge.History{*in.History}, in.Histories...)
}

// ids returns the ids of observations.
func ids(list []forge.Observation) []string {
	var out []string
	for i := range list {
		out = append(out, list[i].ID)
	}
	return out
}
