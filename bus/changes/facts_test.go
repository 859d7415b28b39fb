package changes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

// at returns the summary of an intent whose task is at a step.
func at(step forge.Step, open ...forge.Attempt) *forge.Summary {
	return &forge.Summary{Status: forge.StatusExecuting, RunSummary: forge.RunSummary{
		Run: 1, TaskCount: 1, Open: open, Tasks: []forge.TaskSummary{{ID: "a-001", Title: "one", Status: forge.TaskImplementing, Step: step}},
	}}
}

var review = forge.Attempt{Task: "a-001", Step: forge.StepReview, Number: 1, Claim: 1}

// TestFaults tells of a rejection with its findings, of the rules' as well; of an
// approval, of a review that asks first and of one that came too late it tells nothing.
func TestFaults(t *testing.T) {
	reviewed := func(v forge.Verdict) []forge.Event {
		return []forge.Event{{Message: &forge.Result{Attempt: review, Output: &forge.Review{Verdict: v, Issues: []string{"no test"}}}}}
	}
	for _, one := range []struct {
		about       string
		before, now *forge.Summary
		events      []forge.Event
		want        string
	}{
		{"rejected", at(forge.StepReview, review), at(forge.StepImplement), reviewed(forge.VerdictRejected), "changes-requested a-001 one rejected no test"},
		{"not proven", at(forge.StepReview, review), at(forge.StepImplement), reviewed(forge.VerdictApproved), "changes-requested a-001 one rejected no test"},
		{"approved", at(forge.StepReview, review), at(forge.StepMerge), reviewed(forge.VerdictApproved), ""},
		{"asks first", at(forge.StepReview, review), at(forge.StepRebase), reviewed(""), ""},
		{"too late", at(forge.StepImplement), at(forge.StepImplement), reviewed(forge.VerdictRejected), ""},
	} {
		got := ""
		for _, c := range withFacts(nil, one.before, one.now, one.events) {
			got += fmt.Sprint(c.what, " ", c.task.ID, " ", c.task.Title, " ", c.cause.Review.Verdict, " ", c.cause.Review.Issues[0])
		}
		if got != one.want {
			t.Errorf("%s: %q, want %q", one.about, got, one.want)
		}
	}
}

// TestFailedMerge: that the base branch moved and a verify command failed there
// is told, and its record is read for it although nothing else changes in it.
func TestFailedMerge(t *testing.T) {
	before, now := at(forge.StepMerge), at(forge.StepImplement)
	if !judged(before, now) || judged(before, before) || judged(nil, before) {
		t.Error("only the record in which a merge ends is read")
	}
	failed := forge.VerifyReport{Command: "make test", Output: "1 failed"}
	list := withFacts(nil, before, now, []forge.Event{{Message: &forge.MergeEnded{
		Task: "a-001", Result: &forge.MergeResult{Outcome: forge.MergeVerifyFailed, Verify: &failed},
	}}})
	if len(list) != 1 || list[0].what != ChecksFailed || list[0].cause.Verify.Step != forge.StepMerge {
		t.Errorf("%+v", list)
	}
}

// TestQuestionsAreTold has the texts of questions with the change that says
// that they wait, cut to a bound together.
func TestQuestionsAreTold(t *testing.T) {
	a := forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}
	before, now := &forge.Summary{RunSummary: forge.RunSummary{Run: 1, Open: []forge.Attempt{a}}}, &forge.Summary{Waiting: forge.WaitingClarification}
	var many []forge.Clarification
	for i := range 100 {
		many = append(many, forge.Clarification{Question: fmt.Sprint(i, strings.Repeat("?", 5000))})
	}
	events := []forge.Event{{Message: &forge.Result{Attempt: a, Output: &forge.Analysis{Clarifications: many}}}}
	list := withFacts(changes(before, now), before, now, events)
	if len(list) != 1 || list[0].what != Waiting || !strings.HasPrefix(list[0].cause.Questions[0].Question, "0?") {
		t.Fatalf("%+v", list)
	}
	data, err := json.Marshal(list[0].cause)
	if err != nil || len(data) > 9<<10 || len(list[0].cause.Truncated) == 0 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if list = withFacts(changes(before, now), before, now, nil); len(list[0].cause.Questions) != 0 {
		t.Errorf("questions of nothing: %+v", list)
	}
}

// TestWhoIsTold names who asked, and the gateway where there was one; what
// another machine says has no author.
func TestWhoIsTold(t *testing.T) {
	before, now := &forge.Summary{Waiting: forge.WaitingApproval}, &forge.Summary{Status: forge.StatusApproved}
	for _, one := range []struct {
		ev   forge.Event
		want string
	}{
		{forge.Event{Actor: "bob", Via: "gateway", Account: "token bob", Message: &forge.Approve{}}, "approved bob gateway"},
		{forge.Event{Actor: "bob", Via: "bob", Message: &forge.Approve{}}, "approved bob "}, // where accounts have keys: everybody's is there
		{forge.Event{Actor: "bob", Via: "gateway", Account: "token bob", Message: &forge.Edit{}}, "resumed bob gateway"},
		{forge.Event{Actor: "a", Anchor: "shop/1", Message: &forge.ChildChanged{}}, "resumed  "},
	} {
		list := withFacts(changes(before, now), before, now, []forge.Event{one.ev})
		if got := string(list[0].what) + " " + list[0].cause.By + " " + list[0].cause.Via; got != one.want {
			t.Errorf("%+v: %q, want %q", one.ev, got, one.want)
		}
	}
}

// TestAskingForChangesIsTold: a person who asks for changes has not approved, and
// their words are told with what they are about: the plan, one task, or several.
func TestAskingForChangesIsTold(t *testing.T) {
	waiting := func(tasks ...forge.TaskSummary) *forge.Summary {
		return &forge.Summary{
			Status: forge.StatusExecuting, Waiting: forge.WaitingApproval, Plan: "h", RunSummary: forge.RunSummary{Run: 1, TaskCount: len(tasks), Tasks: tasks},
		}
	}
	one, two := forge.TaskSummary{ID: "a-001", Title: "one"}, forge.TaskSummary{ID: "a-002", Title: "two"}
	again := func(task forge.TaskSummary) forge.TaskSummary { task.Step = forge.StepImplement; return task }
	for _, c := range []struct {
		about       string
		before, now *forge.Summary
		task        forge.TaskID
		want        string
	}{
		{
			"a plan", &forge.Summary{Status: forge.StatusProposed, Waiting: forge.WaitingApproval, Plan: "h"}, &forge.Summary{Status: forge.StatusProposed},
			"", "changes-requested - ada gateway shorter",
		},
		{"a change", waiting(one), at(forge.StepImplement), "", "changes-requested a-001 one ada gateway shorter"},
		{"one of two", waiting(one, two), waiting(again(one), two), "a-001", "changes-requested a-001 one ada gateway shorter"},
		{"two", waiting(one, two), waiting(again(one), again(two)), "", "changes-requested - ada gateway shorter"},
	} {
		if c.now.Waiting != "" && c.task == "" {
			c.now.Waiting = ""
		}
		ev := forge.Event{Actor: "ada", Via: "gateway", Account: "token ada", Message: &forge.RequestChanges{Hash: "h", Words: "shorter", Task: c.task}}
		var got []string
		for _, told := range withFacts(changes(c.before, c.now), c.before, c.now, []forge.Event{ev}) {
			about := "-"
			if told.task != nil {
				about = string(told.task.ID) + " " + told.task.Title
			}
			got = append(got, fmt.Sprint(told.what, " ", about, " ", told.cause.By, " ", told.cause.Via, " ", told.cause.Words))
		}
		if list := strings.Join(got, "; "); list != c.want {
			t.Errorf("%s: %q, want %q", c.about, list, c.want)
		}
	}
}

// TestCommentedChange tells of comments by whom a system says, once for each that is told.
func TestCommentedChange(t *testing.T) {
	before := at(forge.StepImplement)
	told := func(ref string) *forge.Summary {
		now := at(forge.StepImplement)
		now.Comments = &forge.Comments{Count: 2, Account: "work account 5 eve", Ref: ref, At: time.Unix(60, 0)}
		return now
	}
	now := told("shop#3 comment 7")
	ev := forge.Event{Actor: "work", Via: "gateway", Account: "work account 1 bot", Message: &forge.Submit{Comments: now.Comments}}
	list := withFacts(changes(before, now), before, now, []forge.Event{ev})
	if len(list) != 1 || list[0].what != Commented {
		t.Fatalf("told is %+v", list)
	}
	c := list[0].cause
	if c.By != "work" || c.Via != "gateway" || c.Comments == nil || c.Comments.Ref != "shop#3 comment 7" ||
		c.Comments.At.Location() != time.UTC || c.Words != "" {
		t.Errorf("told is %+v: %+v", c, c.Comments)
	}
	if again := changes(now, told("shop#3 comment 7")); len(again) > 0 {
		t.Errorf("it is told again: %+v", again)
	}
	if next := changes(now, told("shop#3 comment 9")); len(next) != 1 {
		t.Errorf("of the next is told %+v", next)
	}
}
