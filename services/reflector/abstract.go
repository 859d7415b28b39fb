package reflector

import (
	"context"
	_ "embed" // the prompt
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/jobs"
)

//go:embed prompts/abstract.md
var abstractText string

var abstractPrompt = prompt.New("abstract.md", abstractText)

// abstractionData is the data of the prompt for skills.
type abstractionData struct {
	*forge.Command

	Found []recurring
	// Skills are those that the repository has.
	Skills []skill
	// MoreSkills counts those that are not shown.
	MoreSkills int
}

// recurring is something that recurs, with its places as text.
type recurring struct {
	forge.Pattern
	Places []string
}

// newAbstractionData returns the data for a command's patterns.
func newAbstractionData(cmd *forge.Command, there []skill) *abstractionData {
	d := &abstractionData{Command: cmd, Skills: there[:min(len(there), maxSkills)]}
	d.MoreSkills = len(there) - len(d.Skills)
	for _, p := range cmd.Abstract().Patterns {
		d.Found = append(d.Found, recurring{p, places(p.Evidence)})
	}
	return d
}

// abstract has the agent draft skills from patterns.
func abstract(ctx context.Context, j *jobs.Job) error {
	if err := j.NeedModel(); err != nil {
		return err
	}
	var known []string
	call := agent.Call{Role: agent.RoleAbstract, Check: func(answer []byte) error { return unlike(answer, known) }}
	out, err := ask(ctx, j, call, func(dir string) (system, text string, err error) {
		there, err := skills(dir)
		if err != nil {
			return "", "", err
		}
		for i := range there {
			known = append(known, there[i].Name)
		}
		return render(abstractPrompt, newAbstractionData(j.Command, there))
	})
	if err != nil {
		return err
	}
	made, observations, err := agent.ParseAbstraction(out.Answer)
	if err != nil {
		return err
	}
	j.Observe(observations, time.Now())
	j.Result.Output = &made
	return nil
}

// unlike returns an error if a draft has the name of an existing skill.
func unlike(answer []byte, known []string) error {
	made, _, err := agent.ParseAbstraction(answer)
	if err != nil {
		return err
	}
	for i, s := range made.Skills {
		if slices.Contains(known, s.Name) {
			return agent.Fail(forge.FailInvalidOutput,
				"the agent's answer: skills[%d].name is %q, and there is such a skill; leave it out if that one covers it, else choose another name", i, s.Name)
		}
	}
	return nil
}
