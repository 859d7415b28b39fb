package bound_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/bound"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/task"
)

// granted returns an approval by people, who may not be requesters if the project says so.
func granted(separate bool, by ...string) *approval.Granted {
	g := &approval.Granted{Rules: forge.Approvals{NotRequester: separate}}
	for _, name := range by {
		g.Approvals = append(g.Approvals, approval.Approval{By: name})
	}
	return g
}

// approvals returns those of a plan that ada approved, with a change under way
// that bob did, and one that is done, by mei.
func approvals(separate bool) (a bound.Approvals, open, done *task.Task) {
	open = &task.Task{Task: forge.Task{ID: "one-001"}, Stage: task.Held, Cleared: task.Clearance{By: granted(separate, "bob")}}
	done = &task.Task{
		Task: forge.Task{ID: "one-002", Status: forge.TaskDone}, Stage: task.Done, Cleared: task.Clearance{By: granted(separate, "mei")},
	}
	gate := &plan.Gate{Approved: granted(separate, "ada")}
	return bound.Approvals{Gate: gate, Tasks: &task.Set{Tasks: []*task.Task{open, done}}, By: rules.Newest}, open, done
}

// TestCheck: who approved the plan, or a change under way, may not say what is
// done; another one may, and so may who approved what is made again with the
// words, or what is merged. The refusal names all who are bound.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		by       string
		separate bool
		by5      bool
		again    bool
		refused  bool
	}{
		"who approved the plan":            {"ada", true, true, false, true},
		"in another spelling":              {" Ada", true, true, false, true},
		"who approved a change":            {"bob", true, true, false, true},
		"which is made again":              {"bob", true, true, true, false},
		"who approved a merged one":        {"mei", true, true, false, false},
		"who approved nothing":             {"eve", true, true, false, false},
		"where requesters may approve":     {"ada", false, true, false, false},
		"by rules that do not know of it":  {"ada", true, false, false, false},
		"the plan, and a change is remade": {"ada", true, true, true, true},
	} {
		a, open, _ := approvals(test.separate)
		if !test.by5 {
			a.By = rules.BoundApprovers.Since - 1
		}
		var again []*task.Task
		if test.again {
			again = append(again, open)
		}
		decision, err := a.Check(test.by, "answer", again...)
		if (err != nil) != test.refused || (decision == forge.Refused) != test.refused {
			t.Errorf("%s: %s, %v", name, decision, err)
		}
		if err != nil && !test.again && !strings.Contains(err.Error(), "another person than ada, bob has to answer") {
			t.Errorf("%s: %v", name, err)
		}
		if got := a.BindAny([]forge.Identity{{Name: "eve"}, {Name: test.by}}); !test.again && got != test.refused {
			t.Errorf("%s: of several people %v", name, got)
		}
	}
}

// TestLapse: words that cannot be refused make the approvals of their people
// void, but for what was merged.
func TestLapse(t *testing.T) {
	a, open, done := approvals(true)
	a.Lapse([]forge.Identity{{Name: "ADA"}, {Name: "mei"}})
	if a.Gate.Approved != nil || open.Cleared.By == nil || done.Cleared.By == nil {
		t.Errorf("the plan's is %v, the change's %v, the merged one's %v", a.Gate.Approved, open.Cleared.By, done.Cleared.By)
	}
	a.Lapse([]forge.Identity{{Name: "bob"}})
	if open.Cleared.By != nil {
		t.Error("the change's still counts")
	}
}
