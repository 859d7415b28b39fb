package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// Each answer of a step before the tasks leads to one of a few outcomes.
func TestOutcomes(t *testing.T) {
	p := &Parent{Intent: &forge.Intent{ID: "a", Project: "p", Settings: forge.Settings{Title: "t", Body: "b"}, Source: forge.SourceHuman}, Number: 1, MaxDepth: 1}
	deep := &Parent{Intent: &forge.Intent{ID: "a", Depth: 1}, Number: 1, MaxDepth: 1}
	goal := &Parent{Intent: &forge.Intent{ID: "a", Settings: forge.Settings{Criteria: []string{"fast", "all tests pass"}}}, Number: 1}
	checked := &Parent{Intent: &forge.Intent{ID: "a", Settings: forge.Settings{Criteria: []string{"fast", "check tests passes"}}}, Number: 1}
	checked.Intent.Checks = []forge.Check{{Criterion: 2, Name: "tests"}}
	taken := func(p *Parent, criteria ...string) Outcome {
		return TakenIn(p, &forge.Intake{Task: "t", Criteria: criteria})
	}
	analyzed := func(p *Parent, a forge.Analysis) Outcome { return Analyzed(p, forge.StepAnalyze, &a) }
	child := forge.ChildPlan{Name: "x", Title: "t", Body: "b"}
	for _, test := range []struct {
		name string
		got  Outcome
		want string // what the outcome says, as said has it
	}{
		{"questions", analyzed(p, forge.Analysis{Clarifications: []forge.Clarification{{Question: "which?"}}}), "1 question(s)"},
		{"a deeper look", analyzed(p, forge.Analysis{Insufficient: "deep"}), "next architect"},
		{"no deeper look than that", Analyzed(p, forge.StepArchitect, &forge.Analysis{Insufficient: "deep"}), "the analysis found neither tasks nor questions"},
		{"tasks", analyzed(p, forge.Analysis{Tasks: []forge.TaskPlan{{Name: "x"}, {DependsOn: []string{"x"}}}}), "2 task(s), 0 child(ren)"},
		{"nothing to do", analyzed(p, forge.Analysis{NothingToDo: "it is done"}), "0 task(s), 0 child(ren): it is done"},
		{"two of a name", analyzed(p, forge.Analysis{Tasks: []forge.TaskPlan{{Name: "x"}, {Name: "x"}}}), `two tasks are named "x"`},
		{
			"unknown dependency", analyzed(p, forge.Analysis{Tasks: []forge.TaskPlan{{Title: "x", DependsOn: []string{"y"}}}}),
			`task "x" depends on "y", which is not in this plan`,
		},
		{"a circle", analyzed(p, forge.Analysis{Tasks: []forge.TaskPlan{{Name: "x", DependsOn: []string{"x"}}}}), "these tasks wait for each other: a-001"},
		{"children", analyzed(p, forge.Analysis{Children: []forge.ChildPlan{child}}), "0 task(s), 1 child(ren)"},
		{
			"tasks and children", analyzed(p, forge.Analysis{Tasks: []forge.TaskPlan{{}}, Children: []forge.ChildPlan{child}}),
			"the analysis has both tasks and child intents; it can have one or the other",
		},
		{
			"too deep", analyzed(deep, forge.Analysis{Children: []forge.ChildPlan{child}}),
			"the intent may not be split any further (policy.max_depth is 1): plan tasks instead",
		},
		{"an audit", Audited(&forge.Audit{}), "ends"},
		{"patterns", Observed(&forge.Observed{Patterns: []forge.Pattern{{}}}), "next abstract"},
		{"no patterns", Observed(&forge.Observed{NothingFound: "there are none"}), "ends: there are none"},
		{"neither", Observed(&forge.Observed{}), "the answer names neither patterns nor why there are none"},
		{"a skill", Abstracted(p, &forge.Abstraction{Skills: []forge.Skill{{Name: "x", Description: "d", Body: "b"}}}), "1 task(s), 0 child(ren)"},
		{"half a skill", Abstracted(p, &forge.Abstraction{Skills: []forge.Skill{{Name: "x"}}}), "skill 1 needs a name, a description and a body"},
		{"no skill", Abstracted(p, &forge.Abstraction{NothingNew: "all are known"}), "ends: all are known"},
		{"a goal", TakenIn(p, &forge.Intake{Task: "t", Criteria: []string{"c"}}), "1 task(s), 0 child(ren)"},
		{"a goal with a criterion left out", taken(goal, "fast"), "criteria: has 1 entries of those that are asked for"},
		{"a goal in words of a check", taken(goal, "fast", "check tests passes"), "criteria: has 1 entries"},
		{"a goal that is put in words of a check", taken(goal, "`make` exits with 0"), "criteria: is empty"},
		{"a goal that repeats its check", taken(checked, "check tests passes", "fast"), "1 task(s)"},
		{"a goal whose check takes a text's place", taken(checked, "check tests passes"), "criteria: has 1 entries"},
		{"a goal without criteria", TakenIn(p, &forge.Intake{Task: "t"}), "criteria: is empty; a goal has at least one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := said(&test.got); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What a person approves is that a command decides, not only the words for it.
func TestHashHasTheChecks(t *testing.T) {
	in := &forge.Intent{ID: "a"}
	of := func(checks ...forge.Check) string {
		t := &task.Task{}
		t.Criteria, t.Checks = []string{"check tests passes"}, checks
		return Hash(in, []*task.Task{t}, nil)
	}
	words, named, line := of(), of(forge.Check{Criterion: 1, Name: "tests"}), of(forge.Check{Criterion: 1, Command: "tests"})
	if words == named || named == line || words == line {
		t.Errorf("plans of different checks have one hash: %s %s %s", words, named, line)
	}
}

// TestContextIsApproved: what the analysis tells the agent besides the plan is in the plan, so
// that the hash is of it, and nowhere else. Plans of before stay as they were approved.
func TestContextIsApproved(t *testing.T) {
	plan := func(by rules.Version, context string) (*task.Task, string) {
		p := Plan{Tasks: []*task.Task{{Task: forge.Task{ID: "a-001", Plan: "Do it.", Context: context}}}}
		p.ShowContext(by)
		return p.Tasks[0], Hash(&forge.Intent{ID: "a"}, p.Tasks, nil)
	}
	one, hash := plan(rules.Newest, "And more.")
	if one.Plan != "Do it.\n\nContext:\nAnd more." || one.Context != "" {
		t.Errorf("it is planned as %q, beside %q", one.Plan, one.Context)
	}
	without, other := plan(rules.Newest, "")
	if without.Plan != "Do it." || other == hash {
		t.Errorf("without a context it is %q, of hash %s", without.Plan, other)
	}
	if old, is := plan(rules.ApprovedContext.Since-1, "And more."); old.Plan != "Do it." || old.Context != "And more." || is != other {
		t.Errorf("by the rules of before it is %q, beside %q, of hash %s", old.Plan, old.Context, is)
	}
}

// said returns an outcome in words.
func said(o *Outcome) string {
	var s string
	switch {
	case o.Err != nil:
		return o.Err.Error()
	case len(o.Questions) > 0:
		return fmt.Sprintf("%d question(s)", len(o.Questions))
	case o.Next != "":
		return "next " + string(o.Next)
	case o.Ends:
		s = "ends"
	default:
		s = fmt.Sprintf("%d task(s), %d child(ren)", len(o.Plan.Tasks), len(o.Plan.Children))
	}
	if o.Reason != "" {
		s += ": " + o.Reason
	}
	return s
}

// What a person has to approve.
func TestNeedsApproval(t *testing.T) {
	for _, test := range []struct {
		name     string
		in       forge.Intent
		vouched  bool
		reworded string
		want     bool
	}{
		{name: "a person's, at low risk", in: forge.Intent{Source: forge.SourceHuman, Settings: forge.Settings{Risk: forge.RiskLow}}},
		{name: "a person's, at some risk", in: forge.Intent{Source: forge.SourceHuman, Settings: forge.Settings{Risk: forge.RiskMed}}, want: true},
		{name: "a system's", in: forge.Intent{
			Source: forge.SourceSystem, Settings: forge.Settings{Risk: forge.RiskLow},
			Origin: forge.Origin{System: "ci"},
		}, want: true},
		{name: "a trusted system's", in: forge.Intent{
			Source: forge.SourceSystem, Settings: forge.Settings{Risk: forge.RiskLow},
			Origin: forge.Origin{System: "trusted"},
		}},
		{name: "a reflection's on a system's", in: forge.Intent{
			Source: forge.SourceSystemReflection, Settings: forge.Settings{Risk: forge.RiskLow},
			Origin: forge.Origin{System: "trusted"},
		}, want: true},
		{name: "a child of an approved one", in: forge.Intent{Source: forge.SourceSystem, Settings: forge.Settings{Risk: forge.RiskLow}}, vouched: true},
		{
			name: "a goal in other words", in: forge.Intent{Source: forge.SourceHuman, Settings: forge.Settings{Risk: forge.RiskLow}},
			reworded: "it is fast", want: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := Gate{Vouched: test.vouched}
			if why := g.NeedsApproval(&test.in, []string{"trusted"}, test.reworded); (why != "") != test.want {
				t.Errorf("it says %q", why)
			}
		})
	}
}
