package entries_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs/entries"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// keep stores the whole transcripts of an intent, as workers do.
func keep(t *testing.T, b *bus.Bus, id forge.IntentID) {
	t.Helper()
	for n := range 2 {
		a := forge.Attempt{Task: forge.NewTaskID(id, 1), Step: forge.StepImplement, Number: 1 + n}
		if err := transcript.Store(t.Context(), b, forge.Key{Project: project, Intent: id}, a); err != nil {
			t.Fatal(err)
		}
	}
}

// shown returns a function that reads what was not shown yet.
func shown(t *testing.T, q entries.Query) func(b *bus.Bus) ([]string, error) {
	t.Helper()
	var got []string
	r := entries.New(q, func(e entries.Entry) {
		got = append(got, fmt.Sprintf("%s %s %d", e.Intent, e.Kind, int(e.At.Sub(began).Seconds())))
	})
	return func(b *bus.Bus) ([]string, error) {
		t.Helper()
		got = nil
		if err := r.Read(t.Context(), b, false); err != nil {
			t.Fatal(err)
		}
		return got, r.Incomplete()
	}
}

// TestLost checks that transcripts that the stream has lost, all, some or in part, are
// shown as if it had not: each line once, in the order of time.
func TestLost(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	w := &writer{t: t, bus: b}
	for n := range 6 {
		w.decide("one", n)
		w.decide("other", n)
		w.tell("one", n)
		w.tell("other", n)
	}
	queries := []entries.Query{
		{Project: project},
		{Project: project, Intent: "one"},
		{Project: project, Intent: "one", Attempt: 2},
		{Project: project, Since: began.Add(3 * time.Second)},
		{Project: project, Step: forge.StepReview},
		{Project: "blog"},
	}
	var want [][]string
	for _, q := range queries {
		got, err := shown(t, q)(b)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, got)
	}
	if len(want[0]) != 24 || len(want[1]) != 12 || len(want[2]) != 3 {
		t.Fatalf("before: %q", want)
	}
	keep(t, b, "one")
	keep(t, b, "other")
	check := func(what string) {
		t.Helper()
		for i, q := range queries {
			read := shown(t, q)
			got, err := read(b)
			if diff := cmp.Diff(want[i], got); diff != "" || err != nil {
				t.Errorf("%s, %+v: %v\n%s", what, q, err, diff)
			}
			if again, err := read(b); len(again) > 0 || err != nil {
				t.Errorf("%s, %+v: the second time %q, %v", what, q, again, err)
			}
		}
	}
	check("nothing lost")
	for _, left := range []int64{9, 5, 1} {
		s.Forget(t, "FORGE_TRANSCRIPTS", left)
		check(fmt.Sprint(left, " left"))
	}
	s.DeleteStream(t, "FORGE_TRANSCRIPTS")
	s.Connect(t)
	check("the stream is new")
	w.tell("one", 7) // a new claim of an attempt; its line is in the stream only
	want = want[:2]
	queries = queries[:2]
	want[0], want[1] = append(want[0], "one text 7"), append(want[1], "one text 7")
	check("the stream is new, and goes on")
	keep(t, b, "one")
	check("kept again")
}

// TestLostAndNotKept checks that what can be read is shown when the object store
// cannot be, and that this is said.
func TestLostAndNotKept(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	w := &writer{t: t, bus: b}
	w.decide("one", 0)
	w.tell("one", 0)
	keep(t, b, "one")
	s.DeleteStream(t, "FORGE_TRANSCRIPTS")
	s.Connect(t)
	w.tell("one", 2)
	err := b.Objects.Update(t.Context(), objects.TranscriptName(forge.Key{Project: project, Intent: "one"}, forge.Attempt{
		Task: "one-001", Step: forge.StepImplement, Number: 1,
	}), func(o *objects.Object) (*objects.Object, error) {
		return &objects.Object{About: o.About, Content: []byte("rubbish")}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	read := shown(t, entries.Query{Project: project})
	got, err := read(b)
	if diff := cmp.Diff([]string{"one decided 0", "one text 2"}, got); diff != "" || err == nil {
		t.Error(diff, err)
	}
	s.DeleteStream(t, "OBJ_FORGE_TRANSCRIPTS")
	got, err = shown(t, entries.Query{Project: project})(b)
	if diff := cmp.Diff([]string{"one decided 0", "one text 2"}, got); diff != "" || err != nil {
		t.Error("without a store: ", diff, err)
	}
}
