package entries_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs/entries"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

const project = forge.ProjectID("shop")

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func event(id forge.IntentID, n int) forge.Event {
	key := forge.Key{Project: project, Intent: id}
	if n == 0 {
		in := forge.Intent{ID: id, Project: project, Settings: forge.Settings{Title: "0"}, Source: forge.SourceHuman}
		return forge.Event{ID: "0", To: key, At: began, Message: &forge.Submit{Intent: in}}
	}
	title := fmt.Sprint(n)
	return forge.Event{ID: title, To: key, At: began.Add(time.Duration(n) * time.Second), Actor: title, Message: &forge.Edit{Title: &title}}
}

// writer writes a record or a line every time.
type writer struct {
	t   *testing.T
	bus *bus.Bus
}

func (w *writer) decide(id forge.IntentID, n int) {
	w.t.Helper()
	key := forge.Key{Project: project, Intent: id}
	rec := forge.Record{Events: []forge.Event{event(id, n)}, Summary: forge.Summary{Key: key, Status: forge.StatusExecuting}}
	seq, err := w.bus.Journal.Last(w.t.Context(), key)
	if err == nil {
		_, err = w.bus.Journal.Append(w.t.Context(), key, seq, rec)
	}
	if err != nil {
		w.t.Error(err)
	}
}

func (w *writer) tell(id forge.IntentID, n int) {
	w.t.Helper()
	k := forge.Key{Project: project, Intent: id}
	a := forge.Attempt{Task: forge.NewTaskID(id, 1), Step: forge.StepImplement, Number: 1 + n%2, Claim: 1}
	t := transcript.New(transcript.Config{Bus: w.bus.Transcripts, Log: slog.New(slog.DiscardHandler)}, k, a)
	t.Add(transcript.Of(&forge.Progress{To: k, Attempt: a, Kind: forge.ProgressText, Text: fmt.Sprint(n), At: began.Add(time.Duration(n) * time.Second)}))
	t.Close()
}

// TestNoGap checks that what is stored before and what comes while it is read is shown
// once and in order, whenever reading begins, ends and goes on.
func TestNoGap(t *testing.T) {
	const most = 60
	for range 3 {
		s := bustest.StartServer(t)
		w := &writer{t: t, bus: s.Connect(t)}
		first := rand.IntN(most)
		write := func(from, to int) {
			for n := from; n < to; n++ {
				w.decide("one", n)
				w.tell("one", n)
				w.tell("other", n)
			}
		}
		write(0, first)
		var mu sync.Mutex
		var decided, told []string
		enough := make(chan struct{})
		r := entries.New(entries.Query{Project: project, Intent: "one"}, func(e entries.Entry) {
			mu.Lock()
			defer mu.Unlock()
			if e.Intent != "one" {
				t.Errorf("%+v was not asked for", e)
			}
			if e.Kind == entries.Decided {
				decided = append(decided, e.At.Format(time.TimeOnly))
			} else {
				told = append(told, e.At.Format(time.TimeOnly))
			}
			if len(decided)+len(told) == 2*most {
				close(enough)
			}
		})
		var writing sync.WaitGroup
		writing.Go(func() { write(first, most) })
		b := s.Connect(t)
		for done := false; !done; { // reading is cut off again and again
			ctx := wait.Briefly(t, time.Duration(rand.IntN(60))*time.Millisecond)
			if err := r.Read(ctx, b, true); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			select {
			case <-enough:
				done = true
			case <-t.Context().Done():
				t.Fatal("it never ended")
			default:
			}
		}
		writing.Wait()
		var want []string
		for n := range most {
			want = append(want, began.Add(time.Duration(n)*time.Second).Format(time.TimeOnly))
		}
		if diff := cmp.Diff(want, decided); diff != "" {
			t.Errorf("decided: %s", diff)
		}
		if diff := cmp.Diff(want, told); diff != "" {
			t.Errorf("told: %s", diff)
		}
	}
}

// TestOrder checks that what is stored is shown in the order of time, and what a query
// leaves out.
func TestOrder(t *testing.T) {
	b := bustest.Start(t)
	w := &writer{t: t, bus: b}
	for n := range 4 {
		w.decide("one", n)
	}
	for n := range 4 {
		w.tell("one", n)
	}
	for _, test := range []struct {
		query entries.Query
		want  []string
	}{
		{entries.Query{Project: project}, []string{"decided 0", "text 0", "decided 1", "text 1", "decided 2", "text 2", "decided 3", "text 3"}},
		{entries.Query{Project: project, Attempt: 2}, []string{"text 1", "text 3"}},
		{entries.Query{Project: project, Step: forge.StepReview}, nil},
		{entries.Query{Project: project, Task: "one-001", Intent: "one"}, []string{"text 0", "text 1", "text 2", "text 3"}},
		{entries.Query{Project: project, Intent: "other"}, nil},
		{entries.Query{Project: project, Since: began.Add(3 * time.Second)}, []string{"decided 3", "text 3"}},
		{entries.Query{Project: "blog"}, nil},
	} {
		var got []string
		r := entries.New(test.query, func(e entries.Entry) {
			got = append(got, fmt.Sprintf("%s %d", e.Kind, int(e.At.Sub(began).Seconds())))
		})
		for range 2 { // the second time there is nothing new
			if err := r.Read(t.Context(), b, false); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%+v: %s", test.query, diff)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
