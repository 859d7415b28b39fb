package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// skills plans a task for each skill, which writes its file.
func skills(list []forge.Skill) ([]forge.TaskPlan, error) {
	if len(list) == 0 {
		return nil, errors.New("the answer holds no skill")
	}
	plans := make([]forge.TaskPlan, 0, len(list))
	for i, k := range list {
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

// skillFile returns a skill as the file that agents read, with its front
// matter.
func skillFile(name string, k *forge.Skill) string {
	description := strings.Join(strings.Fields(k.Description), " ")
	return "---\nname: " + name + "\ndescription: " + strconv.Quote(description) + "\n---\n\n" + strings.TrimSpace(k.Body) + "\n"
}
