package pending

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

// What can be done about an intent, by what it waits for: the keys, and the commands.
func TestChoices(t *testing.T) {
	goal := &forge.GoalSummary{}
	tasks := []forge.TaskSummary{{ID: "x-001"}, {ID: "x-002"}, {ID: "x-003"}, {ID: "x-004"}}
	for name, c := range map[string]struct {
		summary  forge.Summary
		keys     string
		commands string
	}{
		"nothing": {forge.Summary{}, "", "show x"},
		"approval": {
			forge.Summary{Waiting: forge.WaitingApproval, Plan: "7f", RunSummary: forge.RunSummary{Tasks: tasks}},
			"a approve  r reject  c cancel",
			"approve x --plan 7f; reject x --reason '...'; show x",
		},
		"approval of a plan": {
			forge.Summary{Waiting: forge.WaitingApproval, Plan: "7f", RunSummary: forge.RunSummary{TaskCount: 4, Tasks: tasks}},
			"a approve  w want changes  r reject  c cancel",
			"approve x --plan 7f; request-changes x --hash 7f '...'; reject x --reason '...'; show x",
		},
		"approval, of a goal": {
			forge.Summary{Waiting: forge.WaitingApproval, RunSummary: forge.RunSummary{Goal: goal}},
			"a approve  r reject  c cancel",
			"approve x; reject x --reason '...'; show x",
		},
		"answers": {
			forge.Summary{Waiting: forge.WaitingClarification},
			"e answer  r reject  c cancel",
			"answer x 1 '...'; reject x --reason '...'; show x",
		},
		"files": {
			forge.Summary{Waiting: forge.WaitingDirty, RunSummary: forge.RunSummary{Tasks: tasks[:1]}},
			"t retry  c cancel",
			"git commit or git stash, then retry x; cancel x; show x; show x-001",
		},
		"money": {
			forge.Summary{Waiting: forge.WaitingBudget, RunSummary: forge.RunSummary{Tasks: tasks}},
			"t retry  c cancel",
			"retry x --budget USD; cancel x; show x",
		},
		"money of the project": {
			forge.Summary{Waiting: forge.WaitingBudget, Reason: "budget.daily_usd is used up"},
			"t retry  c cancel",
			"raise the budget in pfl-forge.yaml and commit it, then retry x; cancel x; show x",
		},
		"paused": {
			forge.Summary{Waiting: forge.WaitingPaused},
			"u resume  c cancel",
			"resume x; cancel x; show x",
		},
		"paused with the project": {
			forge.Summary{Waiting: forge.WaitingPaused, Reason: forge.ProjectPaused},
			"u resume  c cancel",
			"resume --all; cancel x; show x",
		},
		"an account, for all": {
			forge.Summary{Waiting: forge.WaitingPaused, Reason: forge.AccountClosed + "claude refuses all calls"},
			"u resume  c cancel",
			"resume --all; cancel x; show x",
		},
		"failed": {
			forge.Summary{Waiting: forge.WaitingFailed, RunSummary: forge.RunSummary{Tasks: tasks}},
			"t retry  r reject  c cancel",
			"retry x; retry x --with 'instructions'; cancel x; show x; show x-001; show x-002; show x-003",
		},
		"failed, of a goal": {
			forge.Summary{Waiting: forge.WaitingFailed, RunSummary: forge.RunSummary{Goal: goal, Tasks: tasks[:1]}},
			"t retry  r reject  c cancel",
			"goal resume x; goal resume x --with 'instructions'; goal cancel x; goal status x; show x-001",
		},
	} {
		s := &c.summary
		s.Key = forge.Key{Project: "p", Intent: "x"}
		var keys []string
		for _, choice := range Choices(s) {
			keys = append(keys, string(choice.Key)+" "+choice.Name)
		}
		if diff := cmp.Diff(c.keys, strings.Join(keys, "  ")); diff != "" {
			t.Errorf("%s: keys (-want +got):\n%s", name, diff)
		}
		commands := strings.ReplaceAll(strings.Join(Commands(s), "; "), "pfl-forge ", "")
		if diff := cmp.Diff(c.commands, commands); diff != "" {
			t.Errorf("%s: commands (-want +got):\n%s", name, diff)
		}
	}
}

// What a person says reaches the state machine, and nothing else does.
func TestEvent(t *testing.T) {
	to := forge.Key{Project: "p", Intent: "x"}
	said := Said{Text: "why", BudgetUSD: 2, Plan: "7f", Task: "x-001"}
	for _, c := range []struct {
		choice *Choice
		want   forge.Message
	}{
		{Approve, &forge.Approve{Plan: "7f"}},
		{Retry, &forge.Retry{Instructions: "why", BudgetUSD: 2}},
		{Resume, &forge.Resume{Task: "x-001"}},
		{RequestChanges, &forge.RequestChanges{Hash: "7f", Words: "why", Task: "x-001"}},
		{Reject, &forge.Reject{Reason: "why"}},
		{Cancel, &forge.Cancel{Reason: "why", Task: "x-001"}},
		{Pause, &forge.Pause{Reason: "why", Task: "x-001"}},
	} {
		if diff := cmp.Diff(forge.Event{To: to, Message: c.want}, c.choice.Event(to, said)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.choice.Name, diff)
		}
	}
}
