package runner_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

var errSeen = errors.New("seen")

// await returns when every intent has settled in a status.
func await(t testing.TB, b *bus.Bus, status forge.Status, ids ...forge.IntentID) {
	t.Helper()
	ctx, moved := wait.WhileMoving(t)
	missing := map[forge.IntentID]bool{}
	for _, id := range ids {
		missing[id] = true
	}
	err := b.Journal.Follow(ctx, project, 0, journal.Follower{Record: func(key forge.Key, _ uint64, rec forge.Record) error {
		moved()
		if s := rec.Summary; s.Idle && s.Status == status && s.Status.Ended() || s.Idle && s.Status == status && s.Waiting != "" {
			delete(missing, key.Intent)
		}
		if len(missing) == 0 {
			return errSeen
		}
		return nil
	}})
	if !errors.Is(err, errSeen) {
		list, _ := b.Journal.Summaries(t.Context(), project)
		t.Fatalf("%d intents never became %s: %v\n%+v", len(missing), status, err, list)
	}
}

func TestIntentsEndDone(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	start(t, b, 4)
	var ids []forge.IntentID
	for i := range 20 {
		id := forge.IntentID(fmt.Sprintf("intent-%d", i))
		ids = append(ids, id)
		ruling, err := b.Submissions.Ask(t.Context(), submission(id))
		if err != nil || ruling.Decision != forge.Applied {
			t.Fatalf("submitting %s: %+v, %v", id, ruling, err)
		}
	}
	await(t, b, forge.StatusDone, ids...)
}

func TestSubmissionIsOneIntent(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	start(t, b, 1)
	for range 3 {
		if err := b.Submissions.Send(t.Context(), submission("one")); err != nil {
			t.Fatal(err)
		}
	}
	other := submission("one")
	other.ID, forge.As[*forge.Submit](other.Message).Intent.Origin.EventID = "another", "another"
	ruling, err := b.Submissions.Ask(t.Context(), other)
	if err != nil || ruling.Decision != forge.Refused || ruling.Field != "id" {
		t.Errorf("a second intent of the same id: %+v, %v; want it refused for its id", ruling, err)
	}
	await(t, b, forge.StatusDone, "one")
}

// A worker's answer whose consequences do not fit into a record counts as none,
// and the intent ends with that as its reason.
func TestDecisionTooLargeToRecord(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	b := bustest.Start(t)
	huge := make([]forge.TaskPlan, 16)
	for i := range huge {
		huge[i] = forge.TaskPlan{Name: fmt.Sprint(i), Title: "t", Plan: strings.Repeat("x", 440<<10)}
	}
	startWith(t, b, 4, func(c forge.Command) forge.Result {
		r := succeed(c)
		if out := forge.As[*forge.Analysis](r.Output); out != nil {
			out.Tasks = huge // in the event once, in the commands once more
		}
		return r
	})
	if ruling, err := b.Submissions.Ask(t.Context(), submission("huge")); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	await(t, b, forge.StatusError, "huge")
	s, err := b.Journal.Summary(t.Context(), forge.Key{Project: project, Intent: "huge"})
	if err != nil || !strings.Contains(s.Reason, "too large") {
		t.Errorf("the reason is %q, %v; want it to say that the answer is too large", s.Reason, err)
	}
}

func TestPersonIsToldWhatCannotBe(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	start(t, b, 1)
	ruling, err := b.Submissions.Ask(t.Context(), forge.Event{
		ID: "a", To: forge.Key{Project: project, Intent: "nobody"}, Message: &forge.Approve{},
	})
	if err != nil || ruling.Decision != forge.Refused || ruling.Reason == "" {
		t.Errorf("approving an unknown intent: %+v, %v; want it refused with a reason", ruling, err)
	}
}

// A journal that a newer version wrote is left alone; what other projects wait
// for is put in force again all the same.
func TestNewerJournalHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	first := s.Connect(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = runner.Run(ctx, runner.Config{Bus: first, Log: slog.New(slog.DiscardHandler)})
	}()
	old := submission("one")
	old.To.Project, forge.As[*forge.Submit](old.Message).Intent.Project = "old", "old"
	for _, ev := range []forge.Event{old, submission("two")} {
		if ruling, err := first.Submissions.Ask(t.Context(), ev); err != nil || ruling.Decision != forge.Applied {
			t.Fatal(ruling, err)
		}
	}
	awaitOpen(t, first, "two")
	stop()
	<-ended
	s.AppendNewer(t, "FORGE_PROJECTS", "forge.project.old")

	s.Restart(t) // the commands are gone
	b := s.Connect(t)
	start(t, b, 1)
	await(t, b, forge.StatusDone, "two")
}

// awaitOpen returns when an intent waits for a worker.
func awaitOpen(t *testing.T, b *bus.Bus, id forge.IntentID) {
	t.Helper()
	err := b.Journal.Follow(t.Context(), project, 0, journal.Follower{Record: func(key forge.Key, _ uint64, rec forge.Record) error {
		if key.Intent == id && len(rec.Summary.Open) > 0 {
			return errSeen
		}
		return nil
	}})
	if !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
}

// extend appends the last record of a journal once more, with a field that this
// version does not know, as a runner stores it.
func extend(t *testing.T, s *bustest.Server, subject string) {
	t.Helper()
	last, err := streamOf(t, s, subject).GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	m := &nats.Msg{Subject: subject, Data: append(last.Data, 0xf8, 0x3f, 0x01), Header: nats.Header{"Forge-Kind": {"record"}}}
	if _, err := nc.RequestMsg(m, 5*time.Second); err != nil {
		t.Fatal(err)
	}
}

// Nobody knows the state of an intent when records of its journal are missing, so
// nothing is decided on it.
func TestDamagedJournalIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	start(t, b, 1)
	if ruling, err := b.Submissions.Ask(t.Context(), submission("one")); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	await(t, b, forge.StatusDone, "one")
	key := forge.Key{Project: project, Intent: "one"}
	before, err := b.Journal.Last(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	forget(t, s, "forge.journal.web.one")

	fresh := s.Connect(t)
	driver := machine.NewDriver(journalOf{fresh.Journal}, fresh.Effects, time.Now, 1)
	_, err = driver.Decide(t.Context(), forge.Event{ID: "x", To: key, Message: &forge.Cancel{}}, false)
	if !errors.Is(err, machine.ErrDamaged) {
		t.Errorf("deciding on it: %v", err)
	}
	if _, err := driver.Recover(t.Context(), key); !errors.Is(err, machine.ErrDamaged) {
		t.Errorf("recovering it: %v", err)
	}
	if after, err := b.Journal.Last(t.Context(), key); err != nil || after != before {
		t.Errorf("its journal went on from %v to %v, %v", before, after, err)
	}
}

// journalOf is the bus as a machine's journal.
type journalOf struct{ *journal.Journal }

// forget deletes the first message of a journal.
func forget(t *testing.T, s *bustest.Server, subject string) {
	t.Helper()
	stream := streamOf(t, s, subject)
	first, err := stream.GetMsg(t.Context(), 1, jetstream.WithGetMsgSubject(subject))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), first.Sequence); err != nil {
		t.Fatal(err)
	}
}

// streamOf returns the stream that holds a subject.
func streamOf(t *testing.T, s *bustest.Server, subject string) jetstream.Stream {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	name, err := js.StreamNameBySubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// What was decided cannot be altered unseen: nothing is decided on the intent
// any more, other intents go on, and the dead letters say where.
func TestAlteredJournalIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler)})
	}()
	for _, id := range []forge.IntentID{"one", "two"} {
		if ruling, err := b.Submissions.Ask(t.Context(), submission(id)); err != nil || ruling.Decision != forge.Applied {
			t.Fatal(ruling, err)
		}
		awaitOpen(t, b, id)
	}
	stop()
	<-ended
	s.Alter(t, "FORGE_JOURNAL", "forge.journal.web.one", "do it", "do 1t")

	fresh := s.Connect(t)
	start(t, fresh, 1)
	await(t, fresh, forge.StatusDone, "two")
	key := forge.Key{Project: project, Intent: "one"}
	before, err := b.Journal.Last(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	driver := machine.NewDriver(journalOf{fresh.Journal}, fresh.Effects, time.Now, 1)
	_, err = driver.Decide(t.Context(), forge.Event{ID: "x", To: key, Message: &forge.Cancel{}}, false)
	if !errors.Is(err, machine.ErrDamaged) || !strings.Contains(err.Error(), "the chain of the journal is broken at message") {
		t.Errorf("deciding on it: %v", err)
	}
	if _, err := driver.Recover(t.Context(), key); !errors.Is(err, machine.ErrDamaged) {
		t.Errorf("recovering it: %v", err)
	}
	if after, err := b.Journal.Last(t.Context(), key); err != nil || after != before {
		t.Errorf("its journal went on from %v to %v, %v", before, after, err)
	}
	dead, err := b.Dead(t.Context())
	if err != nil || len(dead) == 0 || dead[0].Subject != "forge.journal.web.one" || !strings.Contains(dead[0].Reason, "chain") {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
}

// The journals of a run prove one another: whatever an intent's journal loses, up to the
// last thing that it told its project, the project's knows, and the other way round.
func TestJournalsNameOneAnother(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	start(t, b, 4)
	if ruling, err := b.Submissions.Ask(t.Context(), submission("one")); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	await(t, b, forge.StatusDone, "one")
	var anchors [2]int
	if found := audited(t, b, &anchors); len(found) != 0 || anchors[0] < 3 || anchors[1] < 2 {
		t.Fatalf("found %+v, and %d anchors in the project's journal and %d in the intent's", found, anchors[0], anchors[1])
	}
	if err := streamOf(t, s, "forge.journal.web.one").Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := audited(t, b, &anchors)
	if len(found) != 1 || found[0].Kind != chain.Missing || !strings.Contains(found[0].Detail, "the whole journal is gone") {
		t.Errorf("found %+v of an intent that was removed", found)
	}
}

// audited returns what is wrong with all journals, and counts the anchors in
// those of projects and of intents.
func audited(t *testing.T, b *bus.Bus, anchors *[2]int) []chain.Finding {
	t.Helper()
	a := chain.NewAudit(func(string) bool { return true })
	err := b.Journal.Each(t.Context(), forge.Key{}, func(e *journal.Entry) error {
		i := 0
		if !e.Key.IsProject() {
			i = 1
		}
		anchors[i] += len(e.Anchors)
		a.Add(&e.Link)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return a.Findings()
}
