package proof

import (
	"fmt"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestMerged: a merge on the parent that was verified is told as that; one on
// another parent is told as moved, unless its own run is known; and what the
// forge merged otherwise than it was verified says so.
func TestMerged(t *testing.T) {
	yes := true
	verified := document.Verified{Task: "a-001", Step: forge.StepRebase, Base: "x", Head: "h1", PatchID: "p", Passed: &yes}
	merged := func(base string, passed *bool) document.Verified {
		return document.Verified{Task: "a-001", Step: forge.StepMerge, Base: base, Head: "c", PatchID: "p", Passed: passed}
	}
	late := document.Verified{Task: "b-001", Step: forge.StepMerge, Base: "z", Head: "c", PatchID: "p"} // another task's
	for about, c := range map[string]struct {
		records  []document.Verified
		rule     string
		commit   string
		on, ran  string
		moved    bool
		unproven string
	}{
		"not merged":            {records: []document.Verified{verified}, ran: "x"},
		"on the same parent":    {records: []document.Verified{verified, merged("x", nil), late}, commit: "c", on: "x", ran: "x"},
		"on another parent":     {records: []document.Verified{verified, merged("y", nil)}, commit: "c", on: "y", ran: "x", moved: true},
		"and verified there":    {records: []document.Verified{verified, merged("y", &yes)}, commit: "c", on: "y", ran: "y"},
		"verified in the merge": {records: []document.Verified{merged("y", &yes)}, commit: "c", on: "y", ran: "y"},
		"without any command":   {records: []document.Verified{merged("y", nil)}, commit: "c", on: "y"},
		"merged by another one": {
			records: []document.Verified{verified, merged("y", nil)}, rule: "merged-unproven", commit: "c",
			on: "y", ran: "x", moved: true, unproven: "its parent is y",
		},
		"an earlier one of them": {records: []document.Verified{verified}, rule: "merged-unproven", ran: "x"},
	} {
		w := document.Work{Verified: c.records}
		if c.rule != "" {
			w.Adjustments = []document.Adjustment{{Rule: c.rule, Task: "a-001", Detail: "its parent is y"}}
		}
		task := document.Task{ID: "a-001", Product: document.Product{Head: "h1", PatchID: "p", Commit: c.commit}}
		records := About(&w, task.ID)
		p := Of(&w, &task, &records)
		on, ran := "", ""
		if p.Merged != nil {
			on = p.Merged.Base
		}
		if p.Verified != nil {
			ran = p.Verified.Base
		}
		if on != c.on || ran != c.ran || p.Moved != c.moved || p.Unproven != c.unproven {
			t.Errorf("%s: merged on %q, verified on %q, moved %t, unproven %q", about, on, ran, p.Moved, p.Unproven)
		}
	}
}

// TestAskedChecks: the checks that reviewers of the newest change asked for are told in
// their order, with whose they are; those of a former change, or of another task, are not.
func TestAskedChecks(t *testing.T) {
	task := document.Task{ID: "a-001", Product: document.Product{Head: "h2", PatchID: "p2"}}
	w := document.Work{
		Verified: []document.Verified{{Task: "a-001", Head: "h1", PatchID: "p1"}, {Task: "a-001", Head: "h2", PatchID: "p2"}},
		Reviews: []document.Review{
			{Task: "a-001", Head: "h1", Checks: []document.Check{{ID: "a1", Name: "old"}}},
			{Task: "a-001", Head: "h2", Checks: []document.Check{{ID: "a1", Name: "generated", Passed: true}, {ID: "a2", Name: "race"}}},
			{Task: "b-001", Head: "h2", Checks: []document.Check{{ID: "a1", Name: "other"}}},
			{Task: "a-001", Head: "h2", Second: true, Checks: []document.Check{{ID: "a1", Name: "generated"}}},
		},
	}
	records := About(&w, task.ID)
	got := ""
	for _, a := range Of(&w, &task, &records).Asked {
		got += fmt.Sprint(a.Name, " ", a.Passed, " ", a.By, "; ")
	}
	if want := "generated true the reviewer; race false the reviewer; generated false the second reviewer; "; got != want {
		t.Errorf("%s", got)
	}
}

// TestRefusedPatch: what is known of a patch of which a person asked for
// changes afterwards is past, until something is known of what was made since.
// A rejection by its own review, another task's, and one before are none of it.
func TestRefusedPatch(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 2, 9, minute, 0, 0, time.UTC) }
	yes := true
	for about, c := range map[string]struct {
		rule, task string
		at         int
		commit     string
		again      bool
		want       bool
	}{
		"no person refused it":         {rule: "approved", task: "a-001", at: 9},
		"a person asked for changes":   {rule: "changes-requested", task: "a-001", at: 9, want: true},
		"a person rejected it":         {rule: "rework", task: "a-001", at: 9, want: true},
		"its review rejected it":       {rule: "rework", task: "a-001", at: 5},
		"of another task":              {rule: "changes-requested", task: "a-002", at: 9},
		"of the plan":                  {rule: "changes-requested", at: 9},
		"of an attempt before":         {rule: "changes-requested", task: "a-001", at: 2},
		"the same patch was made anew": {rule: "changes-requested", task: "a-001", at: 9, again: true},
		"it was merged":                {rule: "changes-requested", task: "a-001", at: 9, commit: "c"},
	} {
		w := document.Work{
			Verified:    []document.Verified{{Task: "a-001", Head: "h1", PatchID: "p", Passed: &yes, At: at(4)}},
			Reviews:     []document.Review{{Task: "a-001", Head: "h1", Verdict: forge.VerdictApproved, At: at(5)}},
			Adjustments: []document.Adjustment{{Rule: c.rule, Task: forge.TaskID(c.task), Detail: "bob: not so", At: at(c.at)}},
		}
		if c.again {
			w.Verified = append(w.Verified, document.Verified{Task: "a-001", Head: "h2", PatchID: "p", Passed: &yes, At: at(12)})
		}
		task := document.Task{ID: "a-001", Product: document.Product{Head: "h1", PatchID: "p", Commit: c.commit}}
		records := About(&w, task.ID)
		if p := Of(&w, &task, &records); (p.Refused != nil) != c.want {
			t.Errorf("%s: %+v", about, p.Refused)
		}
	}
}
