package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Outcome says how to continue after the answer of a step. Exactly one of Err, Questions,
// Next, Ends and Plan says what.
type Outcome struct {
	// Err says why the answer cannot be used.
	Err error
	// Questions are for a person to answer.
	Questions []forge.Clarification
	// Next is another step that goes on.
	Next forge.Step
	// Why says why the architect does.
	Why string
	// Patterns are those that abstract goes on with.
	Patterns []forge.Pattern
	// Ends says that the run is done.
	Ends bool
	// Audit is the report that the run ends with; nil if there is none.
	Audit *forge.Audit
	// Reason says, for a person, why there is nothing to do.
	Reason string
	// Plan is the accepted plan; nil in every other case.
	Plan *Plan
}

// Plan holds tasks or children, or neither of them, for a reason.
type Plan struct {
	// Tasks are in the order of their ids. There are none if there are Children.
	Tasks []*task.Task
	// Children are the intents that the intent is split into.
	Children Children
	// Joined says of how many planned tasks the one task was made; 0: it was planned as it is.
	Joined int
	// Goal says that the one task is a goal's.
	Goal bool
	// Type is the type of the intent, if its publisher did not say.
	Type string
	// Risk is the risk as the step judged it.
	Risk forge.Risk
	// DependsOn are intents that have to be done before, besides those that the
	// publisher named.
	DependsOn []forge.IntentID
	// Base is the commit of the base branch that the plan was made for; empty
	// if the step read none.
	Base string
}

// ShowContext puts the context of each task, which the analysis wrote for its agent, into
// the plan of the task, which is hashed and shown to whoever approves it: an agent gets no
// text that they have not seen. By the rules of before it gets the two apart.
func (p *Plan) ShowContext(by rules.Version) {
	if !by.Has(rules.ApprovedContext) {
		return
	}
	for _, t := range p.Tasks {
		if t.Context != "" {
			t.Plan, t.Context = strings.TrimSpace(t.Plan+"\n\nContext:\n"+t.Context), ""
		}
	}
}

// Analyzed takes an analysis, or a deeper one by an architect.
func Analyzed(p *Parent, step forge.Step, a *forge.Analysis) Outcome {
	switch {
	case len(a.Clarifications) > 0:
		return Outcome{Questions: a.Clarifications}
	case a.Insufficient != "" && step == forge.StepAnalyze && len(a.Tasks) == 0 && len(a.Children) == 0:
		return Outcome{Next: forge.StepArchitect, Why: a.Insufficient}
	}
	tasks, err := tasksOf(p.Intent.ID, a.Tasks)
	if err != nil {
		return Outcome{Err: err}
	}
	children, err := p.split(a.Children)
	switch {
	case err != nil:
		return Outcome{Err: err}
	case len(tasks) > 0 && len(children) > 0:
		return Outcome{Err: errors.New("the analysis has both tasks and child intents; it can have one or the other")}
	case len(tasks) == 0 && len(children) == 0 && a.NothingToDo == "":
		return Outcome{Err: errors.New("the analysis found neither tasks nor questions")}
	}
	joined := 0
	if p.joins(tasks) {
		joined = len(tasks)
		if tasks, err = p.join(tasks); err != nil {
			return Outcome{Err: err}
		}
	}
	return Outcome{Reason: a.NothingToDo, Plan: &Plan{
		Tasks: tasks, Joined: joined, Children: children, Type: a.Type, Risk: a.Risk, DependsOn: a.DependsOn, Base: a.Base,
	}}
}

// Audited takes an audit's report.
func Audited(a *forge.Audit) Outcome { return Outcome{Ends: true, Audit: a} }

// Observed takes the patterns in the project's history.
func Observed(o *forge.Observed) Outcome {
	switch {
	case len(o.Patterns) > 0:
		return Outcome{Next: forge.StepAbstract, Patterns: o.Patterns}
	case o.NothingFound != "":
		return Outcome{Ends: true, Reason: o.NothingFound}
	}
	return Outcome{Err: errors.New("the answer names neither patterns nor why there are none")}
}

// Abstracted makes a task of each skill: a file that is written, reviewed and
// merged like any other change.
func Abstracted(p *Parent, a *forge.Abstraction) Outcome {
	if len(a.Skills) == 0 && a.NothingNew != "" {
		return Outcome{Ends: true, Reason: a.NothingNew}
	}
	plans, err := skills(a.Skills)
	if err != nil {
		return Outcome{Err: err}
	}
	tasks, err := tasksOf(p.Intent.ID, plans)
	if err != nil {
		return Outcome{Err: err}
	}
	return Outcome{Plan: &Plan{Tasks: tasks, Risk: forge.RiskLow}}
}

// TakenIn takes a goal's intake: questions, or what is to be done until when.
func TakenIn(p *Parent, in *forge.Intake) Outcome {
	if len(in.Clarifications) > 0 {
		return Outcome{Questions: in.Clarifications}
	}
	criteria, checks := withChecks(p.Intent, in.Criteria)
	if err := checkIntake(in, criteria, len(p.Intent.Criteria)); err != nil {
		return Outcome{Err: err}
	}
	tasks, err := tasksOf(p.Intent.ID, []forge.TaskPlan{{
		Title: p.Intent.Title, Plan: in.Task, Context: in.Notes, Complexity: in.Complexity, RelevantFiles: in.RelevantFiles,
	}})
	if err != nil {
		return Outcome{Err: err}
	}
	tasks[0].Criteria, tasks[0].Checks = criteria, checks
	return Outcome{Plan: &Plan{Tasks: tasks, Goal: true, Type: in.Type, Risk: in.Risk}}
}

// withChecks returns the criteria of an intake with those that a command
// decides in their places, whatever the intake made of them, and their checks.
// Where a command decides every criterion, an intake adds none.
//
// That a command decides is the word of whoever asked for the goal. An agent
// that could drop or reword a check would decide what others are measured by.
func withChecks(in *forge.Intent, answered []string) ([]string, []forge.Check) {
	// Words that read like a check are none: a person who approves the plan would take them for
	// one. Those of the goal's own checks, which an answer may repeat, have their places below.
	texts := slices.DeleteFunc(slices.Clone(answered), forge.LikeCheck.MatchString)
	if len(in.Checks) == 0 {
		return texts, nil
	}
	// Nobody would have to be asked; what an intake adds by itself does not change that.
	if len(in.Checks) == len(in.Criteria) {
		texts = nil
	}
	// A check has its place by what was asked for; the texts keep the order of
	// the answer around it.
	var criteria []string
	var checks []forge.Check
	left := in.Checks
	for i := range in.Criteria {
		switch {
		case len(left) > 0 && left[0].Criterion == i+1:
			check := left[0]
			left = left[1:]
			criteria = append(criteria, check.Text())
			check.Criterion = len(criteria)
			checks = append(checks, check)
		case len(texts) > 0:
			criteria, texts = append(criteria, texts[0]), texts[1:]
		}
	}
	return append(criteria, texts...), checks
}

// checkIntake says what of an intake cannot be worked with.
func checkIntake(in *forge.Intake, criteria []string, asked int) error {
	switch {
	case strings.TrimSpace(in.Task) == "":
		return &forge.FieldError{Field: "task", Reason: "is empty"}
	case len(criteria) == 0:
		return &forge.FieldError{Field: "criteria", Reason: "is empty; a goal has at least one"}
	case len(criteria) < asked:
		return &forge.FieldError{Field: "criteria", Reason: fmt.Sprintf(
			"has %d entries of those that are asked for, which are %d; none can be left out, or put in the words of a check", len(criteria), asked,
		)}
	case len(criteria) > forge.MaxCriteria:
		return &forge.FieldError{Field: "criteria", Reason: fmt.Sprintf("has %d entries; at most %d are allowed", len(criteria), forge.MaxCriteria)}
	}
	for i, c := range criteria {
		if strings.TrimSpace(c) == "" || len(c) > forge.MaxCriterion {
			return &forge.FieldError{Field: fmt.Sprintf("criteria[%d]", i), Reason: fmt.Sprintf("must have 1 to %d bytes", forge.MaxCriterion)}
		}
	}
	return nil
}
