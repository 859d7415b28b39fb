package agent

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Intake is the answer of an intake call: a goal's task and criteria, or questions.
type Intake struct {
	Status        string         `json:"status"` // accepted or needs_clarification
	Task          string         `json:"task"`
	Criteria      []string       `json:"criteria"`
	Questions     []GoalQuestion `json:"clarification_questions,omitempty"`
	Notes         string         `json:"validation_notes,omitempty"`
	Type          string         `json:"type,omitempty"`
	Risk          string         `json:"risk,omitempty"`       // low, med or high
	Complexity    string         `json:"complexity,omitempty"` // low, med or high
	RelevantFiles []string       `json:"relevant_files,omitempty"`
	Observations  []Observation  `json:"observations,omitempty"`
}

// GoalQuestion is put to a person before a goal is accepted.
type GoalQuestion struct {
	Question  string   `json:"question"`
	Context   string   `json:"context"`
	Suggested []string `json:"suggested_answers,omitempty"`
}

// The values of Intake.Status.
const (
	intakeAccepted = "accepted"
	intakeAsks     = "needs_clarification"
)

// ParseIntake returns the answer of an intake call, or a *Failure. It has either
// questions, or a task and criteria. wanted lists the criteria that the person
// wrote, without those that commands decide: those that the answer keeps are
// returned in the person's words; if one was changed, the notes have to say why.
func ParseIntake(answer []byte, wanted []string) (forge.Intake, []forge.Observation, error) {
	var a Intake
	if err := decode(answer, &a); err != nil {
		return forge.Intake{}, nil, err
	}
	out := forge.Intake{Notes: clip(a.Notes, maxReport), Type: strings.TrimSpace(a.Type), Risk: forge.Risk(a.Risk)}
	if out.Type != "" && !typeShape.MatchString(out.Type) {
		return out, nil, invalid("type is %q; must be one lower-case word", a.Type)
	}
	if a.Risk != "" && out.Risk.Rank() == 0 {
		return out, nil, invalid("risk is %q; must be low, med or high", a.Risk)
	}
	obs, err := observations(a.Observations, forge.StepIntake)
	if err != nil {
		return out, nil, err
	}
	switch a.Status {
	case intakeAccepted:
		err = parseAccepted(&out, &a, wanted)
	case intakeAsks:
		out.Clarifications, err = goalQuestions(a.Questions)
	default:
		err = invalid("status is %q; must be %s or %s", a.Status, intakeAccepted, intakeAsks)
	}
	return out, obs, err
}

// parseAccepted checks an accepted goal and fills in out.
func parseAccepted(out *forge.Intake, a *Intake, wanted []string) error {
	out.Task, out.Complexity, out.RelevantFiles = term.Sanitize(strings.TrimSpace(a.Task)), forge.Complexity(a.Complexity), a.RelevantFiles
	switch {
	case len(a.Questions) > 0:
		return invalid("status is accepted, but there are clarification_questions; ask with %s, or leave them out", intakeAsks)
	case out.Task == "":
		return invalid("task is empty")
	case len(out.Task) > forge.MaxBody:
		return invalid("task is %d bytes long; at most %d are allowed", len(out.Task), forge.MaxBody)
	case out.Risk == "":
		return invalid("risk is empty; must be low, med or high")
	case out.Type == forge.TypeAudit, out.Type == forge.TypeSkillExtraction:
		return invalid("type is %q, which is another kind of request; name the kind of change, such as fix", out.Type)
	case !slices.Contains([]forge.Complexity{"", forge.ComplexityLow, forge.ComplexityMed, forge.ComplexityHigh}, out.Complexity):
		return invalid("complexity is %q; must be low, med or high", a.Complexity)
	}
	var err error
	if out.Criteria, err = criteria(a.Criteria, wanted); err != nil {
		return err
	}
	return checkCriteriaKept(out, wanted)
}

// criteria returns the criteria of an answer, each once and on one line, or in the
// words of the wanted one that it equals.
func criteria(list, wanted []string) ([]string, error) {
	var out []string
	for i, c := range list {
		c = term.Line(c)
		if k := slices.IndexFunc(wanted, func(w string) bool { return term.Line(w) == c }); k >= 0 {
			c = wanted[k]
		}
		switch {
		case c == "":
			return nil, invalid("criteria[%d] is empty", i)
		case len(c) > forge.MaxCriterion:
			return nil, invalid("criteria[%d] is %d bytes long; at most %d are allowed: say one thing in each", i, len(c), forge.MaxCriterion)
		case !slices.Contains(out, c):
			out = append(out, c)
		}
	}
	switch {
	case len(out) == 0 && len(wanted) > 0: // otherwise commands decide every criterion
		return nil, invalid("criteria is empty; a goal has at least one")
	case len(out) > forge.MaxCriteria:
		return nil, invalid("has %d criteria; at most %d are allowed: leave out what follows from the others", len(out), forge.MaxCriteria)
	}
	return out, nil
}

// checkCriteriaKept refuses an intake that drops a wanted criterion without an
// explanation.
func checkCriteriaKept(out *forge.Intake, wanted []string) error {
	var lines []string
	for _, w := range wanted {
		if line := term.Line(w); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(out.Criteria) < len(lines) {
		return invalid("has %d criteria, and the request has %d; none of those is left out", len(out.Criteria), len(lines))
	}
	for _, w := range wanted {
		kept := slices.ContainsFunc(out.Criteria, func(c string) bool { return term.Line(c) == term.Line(w) })
		if !kept && out.Notes == "" {
			return invalid("criteria lacks %q, which the request has; keep its words, or say in validation_notes how it was made precise, and why", short(w))
		}
	}
	return nil
}

// goalQuestions checks and converts the questions about a goal.
func goalQuestions(list []GoalQuestion) ([]forge.Clarification, error) {
	switch {
	case len(list) == 0:
		return nil, invalid("status is %s, but clarification_questions is empty", intakeAsks)
	case len(list) > maxQuestions:
		return nil, invalid("has %d clarification_questions; at most %d are allowed: ask what decides most", len(list), maxQuestions)
	}
	var out []forge.Clarification
	for i, q := range list {
		c := forge.Clarification{Question: clip(q.Question, maxStatement), Context: clip(q.Context, maxReport), SuggestedAnswers: clipList(q.Suggested)}
		if c.Question == "" {
			return nil, invalid("clarification_questions[%d].question is empty", i)
		}
		out = append(out, c)
	}
	return out, nil
}
