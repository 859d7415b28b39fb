package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// A person is who their account says, and sees what the command line shows.
func TestPersonSpeaksForThemselves(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	runner := connectAs(ctx, t, s, "runner", "RUNNER")
	seen := decider(ctx, t, runner)
	b := connectAs(ctx, t, s, "ada", "ADA")
	ev := submit(key)
	ev.Actor = "ada"
	asked := forge.As[*forge.Submit](ev.Message)
	asked.Intent.Origin.Actor = "bob"
	asked.Intent.Requesters = []forge.Identity{{Name: "bob", Proven: true}}
	if r, err := b.Submissions.Ask(ctx, ev); err == nil && r.Decision == forge.Applied {
		t.Errorf("a person says who is proven to ask: %+v", r)
	}
	asked.Intent.Requesters, ev.ID = nil, ev.ID+"-honest"
	if r, err := b.Submissions.Ask(ctx, ev); err != nil || r.Decision != forge.Applied {
		t.Fatal(r, err)
	}
	ev = wait.For(t, seen)
	if in := forge.As[*forge.Submit](ev.Message).Intent; ev.Actor != "ada" || in.Source != forge.SourceHuman ||
		!slices.Equal(in.Requesters, []forge.Identity{{Name: "ada", Proven: true}, {Name: "bob"}}) {
		t.Errorf("got %+v", ev)
	}
	if r, err := b.Submissions.Ask(ctx, forge.Event{ID: "a", To: key, Actor: "ada", Message: &forge.Approve{}}); err != nil || r.Decision != forge.Applied {
		t.Fatal(r, err)
	}
	if all, err := b.Journal.Summaries(ctx, "shop"); err != nil || len(all) != 1 {
		t.Errorf("status: %v, %v", all, err)
	}
	if _, err := b.Journal.ProjectSummaries(ctx, "shop"); err != nil {
		t.Errorf("status: %v", err)
	}
	if list, err := b.Journal.Projects(ctx); !errors.Is(err, bus.ErrNotAllowed) {
		t.Errorf("she sees the projects %v, %v", list, err)
	}
	if _, err := b.Submissions.Services(ctx, "shop", "ada", true); err != nil {
		t.Errorf("create: %v", err)
	}
	if _, _, err := b.Journal.Load(ctx, key); err != nil {
		t.Errorf("show: %v", err)
	}
	if _, err := b.Dead(ctx); err != nil {
		t.Errorf("doctor: %v", err)
	}
	if _, err := b.Events.Idle(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
	implementer := connectAs(ctx, t, s, "implementer", "IMPLEMENTER")
	readsTranscripts(ctx, t, implementer, b)
	cleaner(t, implementer, func(_ context.Context, _ forge.ProjectID, person string, _ requests.CleanRequest) (requests.Cleaned, error) {
		return requests.Cleaned{Next: forge.IntentID(person)}, nil
	})
	if got, err := cleans(ctx, t, b, "ada", requests.CleanRequest{}); err != nil || got.Next != "ada" {
		t.Errorf("clean: %v, %v", got, err)
	}
	if _, err := b.Leftovers.Clean(ctx, "shop", "bob", requests.CleanRequest{}); !errors.Is(err, requests.ErrNotAllowed) {
		t.Errorf("clean for somebody else: %v", err)
	}
	enough := errors.New("enough")
	follower := journal.Follower{
		Record:   func(forge.Key, uint64, forge.Record) error { return nil },
		Project:  func(forge.Key, uint64, forge.Record) error { return nil },
		CaughtUp: func() error { return enough },
	}
	if err := b.Journal.Follow(ctx, "shop", 0, follower); !errors.Is(err, enough) {
		t.Errorf("run: %v", err)
	}

	nc, refused := as(t, s, "ada")
	for _, subject := range []string{
		"forge.intent.shop.by.bob.approve", "forge.intent.bank.by.ada.approve", "forge.intent.shop.submit", "forge.intent.shop.from.ci.submit",
		"forge.journal.shop.fix-login", "forge.project.shop", "forge.event.shop.a.done", "forge.api.bank.by.ada.list",
		"forge.api.bank.by.ada.services", "forge.api.bank.by.ada.read", "forge.control.shop.a",
		"forge.api.shop.by.bob.clean", "forge.api.bank.by.ada.clean", "forge.cleaned.shop",
		"$JS.API.STREAM.DELETE.FORGE_JOURNAL", "$JS.API.STREAM.PURGE.FORGE_JOURNAL", "$JS.API.STREAM.UPDATE.FORGE_JOURNAL",
		"$JS.API.CONSUMER.DELETE.FORGE_INTENTS.runner", "$SRV.PING", "$SRV.INFO",
		"forge.transcript.shop.fix-login.fix-login-001.implement.1.1", "$O.FORGE_TRANSCRIPTS.C.x", "$JS.API.STREAM.PURGE.OBJ_FORGE_TRANSCRIPTS",
	} {
		deniedPublish(ctx, t, nc, refused, subject)
	}
	for _, subject := range []string{"forge.intent.>", "_INBOX_scanner.>", "_INBOX.>", "forge.progress.bank.*", "$SRV.INFO"} {
		deniedSubscribe(ctx, t, nc, refused, subject)
	}
	bob := ev
	bob.Actor, bob.ID = "bob", "b"
	short := wait.Briefly(t, 300*time.Millisecond)
	if err := b.Submissions.Send(short, bob); err == nil {
		t.Error("she could speak for somebody else")
	}
	if len(seen) > 1 {
		t.Errorf("%d more events came", len(seen)-1)
	}
}

// readsTranscripts checks that a person can read what a worker keeps.
func readsTranscripts(ctx context.Context, t *testing.T, worker, person *bus.Bus) {
	t.Helper()
	a := try("fix-login-001", 1)
	whole := objects.TranscriptName(key, a)
	if err := worker.Transcripts.Append(ctx, key, a, "w/0", []byte("1\n")); err != nil {
		t.Fatal(err)
	}
	if err := worker.Objects.Put(ctx, whole, strings.NewReader("1\n")); err != nil {
		t.Fatal(err)
	}
	if seq, _, err := person.Transcripts.Last(ctx, subjects.TranscriptFilter{Project: "shop"}); err != nil || seq != 1 {
		t.Errorf("logs: %d, %v", seq, err)
	}
	if seq, _, err := person.Transcripts.Oldest(ctx, "shop"); err != nil || seq != 1 {
		t.Errorf("logs: %d, %v", seq, err)
	}
	enough := errors.New("enough")
	if err := person.Transcripts.Follow(ctx, subjects.TranscriptFilter{Project: "shop"}, 0, time.Time{}, transcripts.Follower{
		Lines: func(forge.Key, forge.Attempt, uint64, []byte) error { return enough },
	}); !errors.Is(err, enough) {
		t.Errorf("logs: %v", err)
	}
	if list, err := person.Objects.List(ctx, objects.Name{Kind: objects.Transcript}); err != nil || len(list) != 1 {
		t.Errorf("logs: %v, %v", list, err)
	}
	if got, err := person.Objects.Read(ctx, whole); err != nil || string(got.Content) != "1\n" {
		t.Errorf("logs: %v, %v", got, err)
	}
}
