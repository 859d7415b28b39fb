package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/plainjson"
)

// TestAbridgeView: the state of an intent has no signed statement, of a review
// or of a judgment, and what was given keeps it.
func TestAbridgeView(t *testing.T) {
	const secret = "tell-nobody"
	judgment := &forge.Judgment{Statement: secret, Reason: "kept"}
	v := forge.View{
		Reviews: []forge.Review{{Statement: secret, Issues: []string{"kept"}}},
		Goal:    &forge.GoalView{Iterations: []forge.Iteration{{}, {Judgment: judgment}}},
	}
	told := AbridgeView(v)
	data, err := plainjson.Marshal(told)
	if err != nil || strings.Contains(string(data), secret) || strings.Count(string(data), "kept") != 2 {
		t.Errorf("told is %s, %v", data, err)
	}
	if v.Reviews[0].Statement != secret || judgment.Statement != secret {
		t.Error("what was given is changed")
	}
}

// TestAbridge looks for everything that a reader is not told in what is told,
// and has what people read there. What was given stays as it is.
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
	if kept := strings.Count(text, "kept"); strings.Contains(text, secret) || kept < 8 {
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
