package outbox

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// A message of any type can be written out and read back.
func TestSnapshotOfMessages(t *testing.T) {
	var s State
	for _, spec := range messages.All() {
		s.Messages = append(s.Messages, Message{Key: "k", Reply: true, Event: forge.Event{ID: "1", Message: spec.Message}})
	}
	data, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	var got State
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"Messages":[{"Type":"New"}]}`), &got); err == nil {
		t.Error("a message of an unknown type was read")
	}
}

// What is newer takes the place of what has the same key.
func TestReplace(t *testing.T) {
	var s State
	var eff forge.Effects
	at := time.Unix(0, 0).UTC()
	for i := range 2 {
		s.Arm(&eff, forge.Timer{Key: "park/1", At: at.Add(time.Duration(i))})
		s.SendToProject(&eff, Project{From: forge.Key{Project: "p", Intent: "a"}, Key: "end", Number: i, Event: forge.Event{Message: &forge.RunEnded{}}})
	}
	if len(s.Timers) != 1 || s.HasTimerAt("park/1", at) || !s.HasTimerAt("park/1", at.Add(1)) {
		t.Errorf("the timers are %v", s.Timers)
	}
	if len(s.Messages) != 1 || s.Messages[0].Event.ID != "a/end/1" || !s.Messages[0].Event.To.IsProject() {
		t.Errorf("the messages are %v", s.Messages)
	}
	if len(eff.Timers) != 2 || len(eff.Outbox) != 2 || s.Idle(never) {
		t.Errorf("the effects are %+v", eff)
	}
	s.CancelTimer("park/1")
	if !s.Idle(never) {
		t.Error("a message without an answer is waited for")
	}
}

func never(string) bool { return false }

// A timer that only looks for what a person does is not waited for.
func TestLooks(t *testing.T) {
	var s State
	s.Arm(&forge.Effects{}, forge.Timer{Key: "park/1"})
	if s.Idle(never) || !s.Idle(func(key string) bool { return key == "park/1" }) {
		t.Error("it is not as idle as its timers say")
	}
}

// A result of an older claim is not wanted.
func TestWants(t *testing.T) {
	var s State
	a := forge.Attempt{Task: "a-001", Step: forge.StepImplement, Number: 1, Claim: 2}
	s.Issue(&forge.Effects{}, &forge.Command{Attempt: a})
	older := a
	older.Claim = 1
	if !s.Wants(a) || s.Wants(older) {
		t.Error("the wrong claim is wanted")
	}
	s.Close(a)
	if s.Wants(a) {
		t.Error("a closed attempt is wanted")
	}
}
