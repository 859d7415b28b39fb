package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

var (
	key  = forge.Key{Project: "shop", Intent: "one"}
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// journalOf decides on events by the rules, and returns what is journaled, a record an event.
func journalOf(t *testing.T, events ...forge.Message) []forge.Record {
	t.Helper()
	m := machine.New(key)
	var list []forge.Record
	for i, message := range events {
		ev := forge.Event{ID: string(rune('a' + i)), To: key, Actor: "ada", At: noon.Add(time.Duration(i) * time.Minute), Message: message}
		eff, r := m.Step(rules.Newest, ev)
		if r.Decision != forge.Applied {
			t.Fatalf("%T: %s", message, r.Reason)
		}
		list = append(list, forge.Record{Events: []forge.Event{ev}, Effects: eff, Summary: m.Summary()})
	}
	return list
}

func watch(records []forge.Record, compare bool) []document.Record {
	f := NewFilm(key, compare)
	for i := range records {
		f.Add(&records[i])
	}
	return f.Records
}

// TestReplay goes through a journal: each record shows state, events, rules and what was sent.
func TestReplay(t *testing.T) {
	records := journalOf(t,
		&forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "One", Body: "Do it."}, Source: forge.SourceHuman}},
		&forge.RunAdmitted{Run: 1},
		&forge.Pause{Reason: "lunch"},
	)
	got := watch(records, true)
	if len(got) != 3 || got[1].Number != 2 || !got[1].At.Equal(noon.Add(time.Minute)) {
		t.Fatalf("%+v", got)
	}
	if !strings.HasPrefix(got[0].State, "run 1 proposed") ||
		!slices.Contains(got[0].Events, "Submit by ada") || !slices.Contains(got[0].Sent, "AdmitRun to project") {
		t.Errorf("the submission: %+v", got[0])
	}
	if !slices.Contains(got[1].Sent, "command -/analyze/1.1") || !slices.Contains(got[2].Rules, "pause  lunch") {
		t.Errorf("analysis and pause: %+v, %+v", got[1], got[2])
	}
	for _, r := range got {
		if len(r.Differs) > 0 {
			t.Errorf("the same rules differ: %v", r.Differs)
		}
	}
}

// TestReplayNamesGateways: who acted through a gateway is told together with it.
func TestReplayNamesGateways(t *testing.T) {
	records := journalOf(t, &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "One", Body: "Do it."}, Source: forge.SourceHuman}})
	ev := &records[0].Events[0]
	ev.Via, ev.Account = "gateway", "token ada-laptop"
	if got := watch(records, false); !slices.Contains(got[0].Events, "Submit by ada via gateway") {
		t.Errorf("the submission: %+v", got[0])
	}
}

// TestOtherRules has records that other rules decided: every difference is said, and is no damage.
func TestOtherRules(t *testing.T) {
	submit := &forge.Submit{Intent: forge.Intent{Settings: forge.Settings{Title: "One", Body: "Do it."}, Source: forge.SourceHuman}}
	records := journalOf(t, submit, &forge.RunAdmitted{Run: 1})
	records[1].Effects.Commands[0].Attempt.Step = forge.StepArchitect
	records[1].Summary.Status = forge.StatusApproved
	records = append(records, forge.Record{
		Events: []forge.Event{{ID: "z", To: key, Actor: "ada", Message: &forge.Approve{Plan: "x"}}}, Summary: records[1].Summary,
	})
	got := watch(records, true)
	all := strings.Join(slices.Concat(got[1].Differs, got[2].Differs), "\n")
	for _, want := range []string{
		"the state was run 1 approved", "is not sent now: command -/architect/1.1", "is sent now: command -/analyze/1.1", "Approve by ada is refused now",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not among\n%s", want, all)
		}
	}
	if quiet := watch(records, false); len(quiet[1].Differs) > 0 {
		t.Error("nobody asked for a comparison")
	}
}
