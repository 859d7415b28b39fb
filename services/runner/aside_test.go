package runner_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// inject appends a message to a journal, as one who has the right to and is no runner.
func inject(t *testing.T, s *bustest.Server, subject string, data []byte) {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request(subject, data, 5*time.Second); err != nil {
		t.Fatal(err)
	}
}

// hear appends a newer record to an intent's journal, and has the project
// decide on what that one sent it.
func hear(t *testing.T, s *bustest.Server, subject string) {
	t.Helper()
	ref := s.AppendNewer(t, "FORGE_JOURNAL", subject)
	b := s.Connect(t)
	of := forge.Key{Project: project}
	_, head, err := b.Journal.Load(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	rec := forge.Record{Events: []forge.Event{{ID: "heard", To: of, At: time.Now().UTC(), Message: &forge.Pause{}, Anchor: ref.String()}}}
	if _, err := b.Journal.Append(t.Context(), of, head, rec); err != nil {
		t.Fatal(err)
	}
}

// leaveOpen has a runner decide on an intent until it waits for a worker.
func leaveOpen(t *testing.T, b *bus.Bus, id forge.IntentID) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler)})
	}()
	if ruling, err := b.Submissions.Ask(t.Context(), submission(id)); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	awaitOpen(t, b, id)
	stop()
	<-ended
}

// TestProjectGoesOnWithoutANewerRecord: the journal of a project ends with a record
// that only a newer version understands, so nothing of the project is decided. Set
// aside, it decides nothing, its bytes stay, the chain is whole, and all intents end.
func TestProjectGoesOnWithoutANewerRecord(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	leaveOpen(t, b, "one")
	subject, of := "forge.project."+string(project), forge.Key{Project: project}
	s.AppendNewer(t, "FORGE_PROJECTS", subject)
	if _, _, err := b.Journal.Load(t.Context(), of); err == nil {
		t.Fatal("this version understands it")
	}
	list, err := b.Journal.Troubles(t.Context(), of)
	if err != nil || len(list) != 1 || !list[0].Loose || list[0].Key != of || list[0].Reason == "" {
		t.Fatalf("%+v, %v", list, err)
	}
	// A mark of another message than the last one would leave the wrong one out.
	wrong := list[0]
	wrong.Seq--
	if err := b.Journal.SetAside(t.Context(), wrong, "ada", time.Now()); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("one before the last: %v", err)
	}
	if err := b.Journal.SetAside(t.Context(), list[0], "ada", time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := b.Journal.SetAside(t.Context(), list[0], "ada", time.Now()); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("twice: %v", err)
	}
	if list, err := b.Journal.Troubles(t.Context(), of); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if all, err := b.Journal.ProjectSummaries(t.Context(), ""); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}

	// Everything is read anew, and what the project was about to do is done.
	s.Restart(t) // the commands are gone
	fresh := s.Connect(t)
	start(t, fresh, 1)
	await(t, fresh, forge.StatusDone, "one")
	if ruling, err := fresh.Submissions.Ask(t.Context(), submission("two")); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	await(t, fresh, forge.StatusDone, "two")
	_, head, err := fresh.Journal.Load(t.Context(), of)
	if err != nil || head.Broken != nil {
		t.Errorf("%v, %v", head.Broken, err)
	}
	// Both are still there to be read: what was set aside, and who did it.
	var kept []string
	err = fresh.Journal.Each(t.Context(), of, func(e *journal.Entry) error {
		if e.Key == of && e.Other != "" {
			kept = append(kept, e.Other)
		}
		return nil
	})
	if err != nil || len(kept) != 2 || !strings.Contains(kept[0], "ada has set it aside: ") || !strings.Contains(kept[1], "ada set message ") {
		t.Errorf("%q, %v", kept, err)
	}
	if dead, err := fresh.Dead(t.Context()); err != nil || len(dead) > 0 {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
}

// world is a server on which an intent is under way, and the test that harms it.
type world struct {
	*testing.T
	s *bustest.Server
}

// TestWhatIsSetAside: of what can be wrong with a journal, a last message that no
// runner wrote, or only a newer one understands, can be set aside. What others
// were decided on, and what may be right behind one that was altered, cannot.
func TestWhatIsSetAside(t *testing.T) {
	t.Parallel()
	const subject = "forge.journal.web.one"
	key := forge.Key{Project: project, Intent: "one"}
	for name, c := range map[string]struct {
		harm  func(world)
		loose []bool
	}{
		"nothing":                  {func(world) {}, nil},
		"garbage holds nothing up": {func(w world) { inject(w.T, w.s, subject, []byte("{}")) }, nil},
		"a mark of nothing holds nothing up": {
			func(w world) { inject(w.T, w.s, subject, []byte(`{"set_aside":{"sequence":1}}`)) }, nil,
		},
		"a newer one": {
			func(w world) { w.s.AppendNewer(w.T, "FORGE_JOURNAL", subject) }, []bool{true},
		},
		"a newer one that is not the last": {
			func(w world) {
				w.s.AppendNewer(w.T, "FORGE_JOURNAL", subject)
				w.s.AppendNewer(w.T, "FORGE_JOURNAL", subject)
			},
			[]bool{false, true},
		},
		"a newer one that another machine has heard of": {
			func(w world) { hear(w.T, w.s, subject) }, []bool{false},
		},
		"a copy of the last one": {func(w world) { extend(w.T, w.s, subject) }, []bool{false}},
		"one that was altered": {
			func(w world) { w.s.Alter(w.T, "FORGE_JOURNAL", subject, "do it", "do 1t") }, []bool{false},
		},
	} {
		// Each on a server of its own: what is broken stays so.
		t.Run(name, func(t *testing.T) {
			s := bustest.StartServer(t)
			leaveOpen(t, s.Connect(t), "one")
			c.harm(world{t, s})
			b := s.Connect(t)
			list, err := b.Journal.Troubles(t.Context(), key)
			if err != nil || len(list) != len(c.loose) {
				t.Fatalf("%+v, %v", list, err)
			}
			for i := range list {
				if list[i].Loose != c.loose[i] {
					t.Errorf("%+v", list[i])
				}
				if err := b.Journal.SetAside(t.Context(), list[i], "ada", time.Now()); (err == nil) != c.loose[i] {
					t.Errorf("setting it aside: %v", err)
				}
			}
		})
	}
}
