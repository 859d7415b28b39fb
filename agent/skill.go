package agent

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of patterns and skills.
const (
	maxPatterns         = 30
	minPatternPlaces    = 2 // places of a pattern
	maxSkillDescription = 500
)

// Observed is the answer of an observe call: patterns in the project's history.
type Observed struct {
	Patterns     []Pattern     `json:"patterns"`
	NothingFound string        `json:"nothing_found,omitempty"` // why there is no pattern
	Observations []Observation `json:"observations,omitempty"`
}

// Pattern describes something that recurs in the project's history.
type Pattern struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Evidence    []Evidence `json:"evidence"` // at least two
}

// Abstraction is the answer of an abstract call: skills made from patterns.
type Abstraction struct {
	Skills       []Skill       `json:"skills"`
	NothingNew   string        `json:"nothing_new,omitempty"` // why there is no skill
	Observations []Observation `json:"observations,omitempty"`
}

// Skill is a draft of a SKILL.md.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"` // one line
	Body        string `json:"body"`        // Markdown without front matter
}

// ParseObserved returns the answer of an observe call, or a *Failure. It has patterns,
// each seen in at least two places, or a reason why there are none.
func ParseObserved(answer []byte) (forge.Observed, []forge.Observation, error) {
	var a Observed
	if err := decode(answer, &a); err != nil {
		return forge.Observed{}, nil, err
	}
	out := forge.Observed{NothingFound: clip(a.NothingFound, maxStatement)}
	switch {
	case len(a.Patterns) == 0 && out.NothingFound == "":
		return out, nil, invalid("there is no pattern, and nothing_found does not say why")
	case len(a.Patterns) > 0 && out.NothingFound != "":
		return out, nil, invalid("there are patterns, and nothing_found says that there are none")
	case len(a.Patterns) > maxPatterns:
		return out, nil, invalid("has %d patterns; at most %d are allowed: leave out the least", len(a.Patterns), maxPatterns)
	}
	for i, p := range a.Patterns {
		at := fmt.Sprintf("patterns[%d]", i)
		found := forge.Pattern{Name: term.Short(p.Name, maxTitle), Description: strings.TrimSpace(p.Description)}
		if found.Name == "" || found.Description == "" {
			return out, nil, invalid("%s.name or .description is empty", at)
		}
		var err error
		if found.Evidence, err = distinctEvidence(at, p.Evidence, minPatternPlaces); err != nil {
			return out, nil, err
		}
		out.Patterns = append(out.Patterns, found)
	}
	obs, err := observations(a.Observations, forge.StepObserve)
	return out, obs, err
}

// ParseAbstraction returns the answer of an abstract call, or a *Failure. It has skills
// with distinct names, or a reason why there are none.
func ParseAbstraction(answer []byte) (forge.Abstraction, []forge.Observation, error) {
	var a Abstraction
	var out forge.Abstraction
	if err := decode(answer, &a); err != nil {
		return out, nil, err
	}
	out.NothingNew = clip(a.NothingNew, maxStatement)
	switch {
	case len(a.Skills) == 0 && out.NothingNew == "":
		return out, nil, invalid("there is no skill, and nothing_new does not say why")
	case len(a.Skills) > 0 && out.NothingNew != "":
		return out, nil, invalid("there are skills, and nothing_new says that there are none")
	case len(a.Skills) > maxPatterns:
		return out, nil, invalid("has %d skills; at most %d are allowed", len(a.Skills), maxPatterns)
	}
	names := map[string]bool{}
	for i, s := range a.Skills {
		s.Description, s.Body = term.Sanitize(strings.TrimSpace(s.Description)), term.Sanitize(strings.TrimSpace(s.Body))
		if why := badSkill(s); why != "" {
			return out, nil, invalid("skills[%d]%s", i, why)
		}
		if names[s.Name] {
			return out, nil, invalid("two skills are named %q", s.Name)
		}
		names[s.Name] = true
		out.Skills = append(out.Skills, forge.Skill(s))
	}
	obs, err := observations(a.Observations, forge.StepAbstract)
	return out, obs, err
}

// badSkill returns why a draft cannot become a SKILL.md that agents find and read;
// empty if it can.
func badSkill(s Skill) string {
	_, err := forge.ParseIntentID(s.Name)
	switch {
	case err != nil: // a skill's name has the form and length of an id
		return fmt.Sprintf(".name is %q; must be a-z, 0-9 and hyphens, at most 64", s.Name)
	case s.Description == "":
		return ".description is empty"
	case len(s.Description) > maxSkillDescription:
		return fmt.Sprintf(".description is %d bytes long; at most %d are allowed", len(s.Description), maxSkillDescription)
	case strings.ContainsFunc(s.Description, unicode.IsControl):
		return ".description must be one line"
	case s.Body == "":
		return ".body is empty"
	case strings.HasPrefix(s.Body, "---"):
		return ".body begins with front matter, which is made of name and description; leave it out"
	case len(s.Body) > forge.MaxBody:
		return fmt.Sprintf(".body is %d bytes long; at most %d are allowed", len(s.Body), forge.MaxBody)
	}
	return ""
}
