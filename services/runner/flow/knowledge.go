package flow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// audited ends the run of an audit with its report.
func (s *Intent) audited(r *forge.Result) {
	s.talk.heardOf(r.Session)
	s.adopt(r.Policy)
	s.analyze.worked()
	s.audit = forge.As[*forge.Audit](r.Output)
	s.reason = ""
	s.finish(forge.StatusDone)
}

// patternsFound goes on with what comes back in the project's history.
func (s *Intent) patternsFound(r *forge.Result) {
	s.talk.heardOf(r.Session)
	s.adopt(r.Policy)
	switch o := forge.As[*forge.Observed](r.Output); {
	case len(o.Patterns) > 0:
		s.patterns = o.Patterns
		s.turnTo(forge.StepAbstract)
		s.startStep()
	case o.NothingFound != "":
		s.analyze.worked()
		s.reason = o.NothingFound
		s.finish(forge.StatusDone)
	default:
		s.invalid(r, errors.New("the answer names neither patterns nor why there are none"))
	}
}

// abstracted makes a task of each skill: a file that is written, reviewed and landed
// like any other change.
func (s *Intent) abstracted(r *forge.Result) {
	s.talk.heardOf(r.Session)
	if a := forge.As[*forge.Abstraction](r.Output); len(a.Skills) == 0 && a.NothingNew != "" {
		s.analyze.worked()
		s.reason = a.NothingNew
		s.finish(forge.StatusDone)
		return
	}
	plan, err := recordings(forge.As[*forge.Abstraction](r.Output).Skills)
	if err == nil {
		err = s.take(&forge.Analysis{Tasks: plan}, r.Attempt.Number)
	}
	if err != nil {
		s.invalid(r, err)
		return
	}
	s.judge(forge.RiskLow)
	s.decideOn(nil)
}

func recordings(skills []forge.Skill) ([]forge.TaskPlan, error) {
	if len(skills) == 0 {
		return nil, errors.New("the answer holds no skill")
	}
	plans := make([]forge.TaskPlan, 0, len(skills))
	for i, k := range skills {
		name := forge.Slug(k.Name)
		if name == "" || strings.TrimSpace(k.Description) == "" || strings.TrimSpace(k.Body) == "" {
			return nil, fmt.Errorf("skill %d needs a name, a description and a body", i+1)
		}
		path := ".claude/skills/" + name + "/SKILL.md"
		plans = append(plans, forge.TaskPlan{
			Name: name, Title: "Record the skill " + name, Plan: k.Description, RelevantFiles: []string{path}, Complexity: forge.ComplexityLow,
			Write: &forge.FileWrite{Path: path, Content: skillFile(name, &k)},
		})
	}
	return plans, nil
}

func skillFile(name string, k *forge.Skill) string {
	description := strings.Join(strings.Fields(k.Description), " ")
	return "---\nname: " + name + "\ndescription: " + strconv.Quote(description) + "\n---\n\n" + strings.TrimSpace(k.Body) + "\n"
}
