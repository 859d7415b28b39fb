package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
)

var errSeen = errors.New("seen")

// await returns when every intent has settled in a status.
func await(t testing.TB, b *bus.Bus, status forge.Status, ids ...forge.IntentID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	missing := map[forge.IntentID]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	err := b.Follow(ctx, project, 0, bus.Follower{Record: func(key forge.Key, _ uint64, rec forge.Record) error {
		if s := rec.Summary; s.Settled && s.Status == status && s.Status.Ended() || s.Settled && s.Status == status && s.Waiting != "" {
			delete(missing, key.Intent)
		}
		if len(missing) == 0 {
			return errSeen
		}
		return nil
	}})
	if !errors.Is(err, errSeen) {
		list, _ := b.Summaries(t.Context(), project)
		t.Fatalf("%d intents never became %s: %v\n%+v", len(missing), status, err, list)
	}
}

func TestIntentsEndDone(t *testing.T) {
	b := bustest.Start(t)
	start(t, b, 4)
	var ids []forge.IntentID
	for i := range 20 {
		id := forge.IntentID(fmt.Sprintf("intent-%d", i))
		ids = append(ids, id)
		ruling, err := b.Ask(t.Context(), submission(id))
		if err != nil || ruling.Decision != forge.Applied {
			t.Fatalf("submitting %s: %+v, %v", id, ruling, err)
		}
	}
	await(t, b, forge.StatusDone, ids...)
}

func TestSubmissionIsOneIntent(t *testing.T) {
	b := bustest.Start(t)
	start(t, b, 1)
	for range 3 {
		if err := b.Send(t.Context(), submission("one")); err != nil {
			t.Fatal(err)
		}
	}
	other := submission("one")
	other.ID, other.Submit.Intent.Origin.EventID = "another", "another"
	ruling, err := b.Ask(t.Context(), other)
	if err != nil || ruling.Decision != forge.Refused || ruling.Field != "id" {
		t.Errorf("a second intent of the same id: %+v, %v; want it refused for its id", ruling, err)
	}
	await(t, b, forge.StatusDone, "one")
}

// A worker's answer whose consequences do not fit into a record counts as none,
// and the intent ends with that as its reason.
func TestDecisionTooLargeToRecord(t *testing.T) {
	b := bustest.Start(t)
	huge := make([]forge.TaskPlan, 16)
	for i := range huge {
		huge[i] = forge.TaskPlan{Name: fmt.Sprint(i), Title: "t", Plan: strings.Repeat("x", 440<<10)}
	}
	startWith(t, b, 4, func(c forge.Command) forge.Result {
		r := succeed(c)
		if r.Analysis != nil {
			r.Analysis.Tasks = huge // in the event once, in the commands once more
		}
		return r
	})
	if ruling, err := b.Ask(t.Context(), submission("huge")); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	await(t, b, forge.StatusError, "huge")
	s, err := b.Summary(t.Context(), forge.Key{Project: project, Intent: "huge"})
	if err != nil || !strings.Contains(s.Reason, "too large") {
		t.Errorf("the reason is %q, %v; want it to say that the answer is too large", s.Reason, err)
	}
}

func TestPersonIsToldWhatCannotBe(t *testing.T) {
	b := bustest.Start(t)
	start(t, b, 1)
	ruling, err := b.Ask(t.Context(), forge.Event{
		ID: "a", To: forge.Key{Project: project, Intent: "nobody"}, Approve: &forge.Approve{},
	})
	if err != nil || ruling.Decision != forge.Refused || ruling.Reason == "" {
		t.Errorf("approving an unknown intent: %+v, %v; want it refused with a reason", ruling, err)
	}
}
