package flow_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// An approval of a plan whose risk or title another person edited meanwhile does not count:
// the hash is of both.
func TestApprovalOfAnotherRisk(t *testing.T) {
	low, high, title := forge.RiskLow, forge.RiskHigh, "something else"
	for name, edit := range map[string]*forge.Edit{"risk": {Risk: &high}, "title": {Title: &title}} {
		s := newScript()
		ask := func(m forge.Message) forge.Decision {
			return s.send(forge.Event{To: forge.Key{Project: "web", Intent: "a"}, Message: m})
		}
		ask(&forge.Submit{Intent: forge.Intent{
			ID: "a", Project: "web", Source: forge.SourceSystem,
			Settings: forge.Settings{Title: "t", Body: "b", Risk: low}, Origin: forge.Origin{System: "ci", EventID: "1"},
		}})
		c := s.open[0]
		s.send(forge.Event{To: c.To, Message: &forge.Result{
			To: c.To, Attempt: c.Attempt, Replica: "r1",
			Output: &forge.Analysis{Risk: low, Type: "fix", Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}},
		}})
		shown := s.intents["a"].Summary().Plan
		if shown == "" {
			t.Fatalf("%s: no plan waits for approval:\n%s", name, s.out.String())
		}
		if d := ask(edit); d != forge.Applied {
			t.Fatalf("%s: the edit is %s", name, d)
		}
		if d := ask(&forge.Approve{Plan: shown}); d != forge.Refused {
			t.Errorf("%s: an approval of the plan as it was before is %s", name, d)
		}
		now := s.intents["a"].Summary().Plan
		if d := ask(&forge.Approve{Plan: now}); d != forge.Applied {
			t.Errorf("%s: an approval of the plan as it is now is %s", name, d)
		}
	}
}
