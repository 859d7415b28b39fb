package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// TestAbridge looks for everything that a reader is not told in what is told, and has what people read there. What was given stays as it is.
func TestAbridge(t *testing.T) {
	const secret = "tell-nobody"
	policy := &forge.Policy{Approvers: []string{secret}}
	result := func(out forge.Output) forge.Message {
		return &forge.Result{Attempt: forge.Attempt{Step: forge.StepReview, Number: 1}, Output: out, Policy: policy}
	}
	records := []forge.Record{{
		Rules: 3, Previous: secret, Summary: forge.Summary{Title: "kept"}, Effects: forge.Effects{ReleasedTasks: []forge.TaskID{secret}},
		Events: []forge.Event{
			{ID: "1", Actor: "kept", Via: "kept", Account: secret, Ref: secret, Signature: secret, Anchor: secret, Message: &forge.Approve{Plan: "kept"}},
			{ID: "2", Message: result(&forge.Analysis{Policy: policy, Tasks: []forge.TaskPlan{{Title: "kept"}}})},
			{ID: "3", Message: result(&forge.Rebase{Statement: secret, Head: "kept"})},
			{ID: "4", Message: result(&forge.Review{Statement: secret, Issues: []string{"kept"}})},
			{ID: "5", Message: result(&forge.Judgment{Statement: secret, Reason: "kept"})},
		},
	}}
	told := Abridge(records)
	text := fmt.Sprintf("%+v", told[0])
	for _, ev := range told[0].Events {
		text += fmt.Sprintf("%+v", ev.Message)
		if r := forge.As[*forge.Result](ev.Message); r != nil {
			text += fmt.Sprintf("%+v %+v", r.Output, r.Policy)
			if a := forge.As[*forge.Analysis](r.Output); a != nil {
				text += fmt.Sprintf("%+v", a.Policy)
			}
		}
	}
	if strings.Contains(text, secret) || strings.Count(text, "kept") < 8 {
		t.Errorf("told is %s", text)
	}
	if ev := told[0].Events[0]; ev.Account == "" {
		t.Error("that there is an account is not told")
	}
	if !strings.Contains(fmt.Sprintf("%+v", records[0].Events[0]), secret) || policy.Approvers[0] != secret ||
		forge.As[*forge.Review](forge.As[*forge.Result](records[0].Events[3].Message).Output).Statement != secret {
		t.Error("what was given is changed")
	}
}
