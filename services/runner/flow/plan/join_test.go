package plan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// joining is an intent that is merged as one change.
func joining() *Parent {
	return &Parent{Intent: &forge.Intent{ID: "a", Settings: forge.Settings{Title: "Extend"}}, Number: 1, Whole: true}
}

// anyPlans returns one to eight tasks, now and then with a circle or two of a
// name. The texts of each begin with its name.
func anyPlans(rng *rand.Rand) []forge.TaskPlan {
	plans := make([]forge.TaskPlan, 1+rng.IntN(8))
	for i, place := range rng.Perm(len(plans)) { // the i-th of an order in which all can be done, circles aside
		name := fmt.Sprintf("t%d", place)
		p := forge.TaskPlan{Name: name, Title: name + " title"}
		p.Complexity = []forge.Complexity{"", forge.ComplexityLow, forge.ComplexityMed, forge.ComplexityHigh}[rng.IntN(4)]
		if rng.IntN(4) > 0 {
			p.Plan, p.Context = "do "+name+" thus", "know "+name+" well"
		}
		for n := range rng.IntN(4) {
			p.Steps = append(p.Steps, fmt.Sprintf("%s step %d", name, n))
			p.Requirements = append(p.Requirements, fmt.Sprintf("%s holds %d", name, n), "all tests pass")
			p.RelevantFiles = append(p.RelevantFiles, fmt.Sprintf("f%d", rng.IntN(5)))
		}
		plans[place] = p
		if i > 0 && rng.IntN(2) == 0 {
			before := slices.DeleteFunc(slices.Clone(plans), func(q forge.TaskPlan) bool { return q.Name == "" || q.Name == name })
			plans[place].DependsOn = []string{before[rng.IntN(len(before))].Name}
		}
	}
	first, last := &plans[0], &plans[len(plans)-1]
	switch rng.IntN(10) {
	case 0, 1:
		first.DependsOn, last.DependsOn = append(first.DependsOn, last.Name), append(last.DependsOn, first.Name)
	case 2:
		last.Name = first.Name
	}
	return plans
}

// TestJoin has an agent plan anything for an intent that is merged as one change. What
// cannot be carried out is refused as it is for every other intent. All else becomes
// one task that has everything of it once, each task after those that it depends on.
func TestJoin(t *testing.T) {
	joined, refused := 0, 0
	for seed := range uint64(500) {
		plans := anyPlans(rand.New(rand.NewPCG(seed, 131)))
		a := &forge.Analysis{Tasks: plans}
		p := joining()
		got := Analyzed(p, forge.StepAnalyze, a)
		p.Whole = false
		apart := Analyzed(p, forge.StepAnalyze, a)
		switch {
		case apart.Err != nil:
			refused++
			if got.Err == nil || got.Err.Error() != apart.Err.Error() {
				t.Fatalf("seed %d: %v, and otherwise %v", seed, got.Err, apart.Err)
			}
			continue
		case got.Err != nil:
			t.Fatalf("seed %d: %v", seed, got.Err)
		case len(plans) == 1:
			if !reflect.DeepEqual(got, apart) {
				t.Fatalf("seed %d: the one task is another: %+v", seed, got.Plan.Tasks[0].Task)
			}
			continue
		}
		joined++
		if len(got.Plan.Tasks) != 1 || got.Plan.Joined != len(plans) {
			t.Fatalf("seed %d: %d tasks of %d", seed, len(got.Plan.Tasks), got.Plan.Joined)
		}
		if why := differs(&got.Plan.Tasks[0].Task, plans); why != "" {
			t.Fatalf("seed %d: %s\nof %+v\nbecame %+v", seed, why, plans, got.Plan.Tasks[0].Task)
		}
	}
	if joined < 100 || refused < 10 {
		t.Errorf("%d were joined, %d refused", joined, refused)
	}
}

// differs says what of the plans is not in the task; empty if all is.
func differs(one *forge.Task, plans []forge.TaskPlan) string {
	if one.ID != "a-001" || one.Title != "Extend" || one.Name != "" || one.DependsOn != nil || one.Status != forge.TaskPending {
		return "it is another task"
	}
	steps := strings.Join(one.Steps, "\n")
	highest := 0
	for _, p := range plans {
		highest = max(highest, rank(p.Complexity))
		section := strings.TrimSpace("## " + p.Title + "\n\n" + p.Plan)
		if !strings.Contains(one.Plan+"\n", section+"\n") || p.Context != "" && !strings.Contains(one.Context, "## "+p.Title+"\n\n"+p.Context) {
			return "a section is missing: " + p.Title
		}
		if !strings.Contains(steps, strings.Join(p.Steps, "\n")) {
			return "steps are missing: " + p.Title
		}
		for _, d := range p.DependsOn {
			if strings.Index(one.Plan, "## "+d+" title") > strings.Index(one.Plan, "## "+p.Title) {
				return p.Title + " comes before " + d
			}
			if i := strings.Index(steps, p.Name+" step"); i >= 0 && strings.Index(steps, d+" step") > i {
				return "the steps of " + p.Title + " come before those of " + d
			}
		}
		aims := p.Requirements
		if len(aims) == 0 {
			aims = []string{p.Title}
		}
		for _, list := range [][2][]string{{aims, one.Requirements}, {p.RelevantFiles, one.RelevantFiles}} {
			for _, s := range list[0] {
				if n := len(slices.DeleteFunc(slices.Clone(list[1]), func(x string) bool { return x != s })); n != 1 {
					return fmt.Sprintf("%q is there %d times", s, n)
				}
			}
		}
	}
	if rank(one.Complexity) != highest {
		return "it is not as complex"
	}
	return ""
}

// TestJoinTakesAll fails where a plan gets a field that is not joined.
func TestJoinTakesAll(t *testing.T) {
	var fields []string
	for f := range reflect.TypeFor[forge.TaskPlan]().Fields() {
		fields = append(fields, f.Name)
	}
	want := []string{ // Name and DependsOn are answered by the order; Item and Write are of tasks that are never joined
		"Name", "Title", "Plan", "RelevantFiles", "Steps", "Context", "Complexity", "DependsOn", "Item", "Write", "Requirements",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("a plan has the fields %v: join takes %v", fields, want)
	}
}

// TestJoinBounds has more requirements than a review answers, more text than an
// agent is shown, and what is never joined.
func TestJoinBounds(t *testing.T) {
	many := func(of string, n int) forge.TaskPlan {
		p := forge.TaskPlan{Title: of}
		for i := range n {
			p.Requirements = append(p.Requirements, fmt.Sprintf("%s %d", of, i))
		}
		return p
	}
	analyzed := func(p *Parent, plans ...forge.TaskPlan) Outcome {
		return Analyzed(p, forge.StepArchitect, &forge.Analysis{Tasks: plans})
	}
	full := []forge.TaskPlan{many("a", forge.MaxCriteria/2), many("b", forge.MaxCriteria-forge.MaxCriteria/2)}
	if o := analyzed(joining(), full...); o.Err != nil || len(o.Plan.Tasks) != 1 || len(o.Plan.Tasks[0].Requirements) != forge.MaxCriteria {
		t.Errorf("as many as there may be: %v", o.Err)
	}
	o := analyzed(joining(), append(full, forge.TaskPlan{Title: "c"})...)
	if want := "the 3 tasks are merged as one (merge.unit), and have 51 requirements together; at most 50 are allowed"; o.Err == nil || o.Err.Error() != want {
		t.Errorf("one more than there may be: %v, want %s", o.Err, want)
	}
	long := strings.Repeat("long ", maxJoined/10)
	o = analyzed(joining(), forge.TaskPlan{Title: "a", Plan: long}, forge.TaskPlan{Title: "b", Context: long, Steps: []string{"more than that"}})
	if o.Err == nil || !strings.Contains(o.Err.Error(), "bytes of plans, steps and context together; at most 65536 are allowed") {
		t.Errorf("more than an agent is shown: %v", o.Err)
	}
	two := []forge.TaskPlan{{Title: "a", Item: "x"}, {Title: "b", Item: "y"}}
	p := joining()
	if o := analyzed(p, two...); o.Err != nil || len(o.Plan.Tasks) != 1 || o.Plan.Tasks[0].Item != "" {
		t.Errorf("items that an agent invents: %v", o.Err)
	}
	p.Intent.Recipe = "format"
	if o := analyzed(p, two...); o.Err != nil || len(o.Plan.Tasks) != 2 || o.Plan.Joined != 0 {
		t.Errorf("a recipe's tasks are joined: %v", o.Err)
	}
	skills := &forge.Abstraction{Skills: []forge.Skill{{Name: "x", Description: "d", Body: "b"}, {Name: "y", Description: "d", Body: "b"}}}
	if o := Abstracted(joining(), skills); o.Err != nil || len(o.Plan.Tasks) != 2 {
		t.Errorf("files that are written as they are, are joined: %v", o.Err)
	}
}
