package goal

import (
	"errors"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
)

func TestGoalOutcome(t *testing.T) {
	failed := func(how forge.LoopStatus) forge.Summary {
		return forge.Summary{
			Status: forge.StatusError, Waiting: forge.WaitingFailed,
			RunSummary: forge.RunSummary{Goal: &forge.GoalSummary{Status: how}},
		}
	}
	for want, s := range map[string]forge.Summary{
		"completed 0":      {Status: forge.StatusDone, RunSummary: forge.RunSummary{Goal: &forge.GoalSummary{Status: forge.LoopCompleted}}},
		"max_iterations 2": failed(forge.LoopMaxIterations),
		"error 2":          failed(forge.LoopError),
		"cancelled 2":      {Status: forge.StatusRejected, RunSummary: forge.RunSummary{Goal: &forge.GoalSummary{Status: forge.LoopCancelled}}},
		"running 3":        {Status: forge.StatusExecuting, RunSummary: forge.RunSummary{Goal: &forge.GoalSummary{}}},
		"waiting 3":        {Status: forge.StatusProposed, Waiting: forge.WaitingApproval, RunSummary: forge.RunSummary{Goal: &forge.GoalSummary{}}},
	} {
		d := goalview.Document{Status: goalview.StatusOf(&s)}
		code := 0
		if e, ok := errors.AsType[kit.Exit](outcome(&d)); ok {
			code = int(e)
		}
		status, number, _ := strings.Cut(want, " ")
		if d.Status != status || string(rune('0'+code)) != number {
			t.Errorf("%s, exit code %d, want %s", d.Status, code, want)
		}
	}
}

func TestGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		waiting forge.Waiting
		said    pending.Said
		want    string // of the event, or of the error
	}{
		"paused":                {forge.WaitingPaused, pending.Said{}, "resume"},
		"paused, with a hint":   {forge.WaitingPaused, pending.Said{Text: "x"}, "search: is paused, and continues unchanged: omit --with and --budget"},
		"failed":                {forge.WaitingFailed, pending.Said{Text: "x"}, "retry x"},
		"waits for money":       {forge.WaitingBudget, pending.Said{BudgetUSD: 2}, "retry "},
		"waits for approval":    {forge.WaitingApproval, pending.Said{}, "search: iteration 3 of 5, 1 of 2 criteria met; `pfl-forge approve search`"},
		"nothing to go on with": {"", pending.Said{}, "retry "},
	} {
		v := &forge.View{
			Intent: forge.Intent{ID: "search"}, Goal: &forge.GoalView{},
			Summary: forge.Summary{
				Key: forge.Key{Project: "p", Intent: "search"}, Status: forge.StatusExecuting, Waiting: c.waiting,
				RunSummary: forge.RunSummary{
					Activity: "iteration 3 of 5, 1 of 2 criteria met", Goal: &forge.GoalSummary{},
				},
			},
		}
		choice, said, err := onlyGoals(goOn(&c.said))(v)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			ev := choice.Event(v.Summary.Key, said)
			retry := forge.As[*forge.Retry](ev.Message)
			switch {
			case choice.Done != "resumed":
				t.Errorf("%s: is %s", name, choice.Done)
			case forge.As[*forge.Resume](ev.Message) != nil:
				got = "resume"
			case retry != nil:
				got = "retry " + retry.Instructions
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	plain := &forge.View{Intent: forge.Intent{ID: "plain"}}
	if _, _, err := onlyGoals(goOn(&pending.Said{}))(plain); err == nil || !strings.Contains(err.Error(), "plain is not a goal") {
		t.Errorf("an intent without criteria: %v", err)
	}
}
