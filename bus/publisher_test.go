package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// book writes the journal of an intent.
type book struct {
	t   testing.TB
	bus *bus.Bus
	key forge.Key
	// head is the end of its journal.
	head chain.Head
	now  forge.Summary
}

func newBook(t testing.TB, b *bus.Bus, id forge.IntentID) *book {
	t.Helper()
	k := &book{t: t, bus: b, key: forge.Key{Project: "shop", Intent: id}}
	k.now = forge.Summary{Key: k.key, Title: string(id), Status: forge.StatusProposed, Source: forge.SourceSystem, RunSummary: forge.RunSummary{Run: 1}}
	k.write(forge.Event{ID: "s", To: k.key, Message: &forge.Submit{Intent: forge.Intent{
		ID: id, Project: "shop", Settings: forge.Settings{
			Title: string(id), Body: "b",
		}, Source: forge.SourceSystem, Origin: forge.Origin{System: "ci", EventID: "e-" + string(id)},
	}}})
	return k
}

// write appends a record with the present summary.
func (k *book) write(ev forge.Event) {
	k.t.Helper()
	k.now.UpdatedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rec := forge.Record{Events: []forge.Event{ev}, Summary: k.now}
	wait.Until(k.t, "the record is written", func() bool {
		head, err := k.bus.Journal.Append(k.t.Context(), k.key, k.head, rec)
		if err == nil {
			k.head = head
			return true
		}
		// A server went, and it is not known whether the record is written.
		last, lastErr := k.bus.Journal.Last(k.t.Context(), k.key)
		if lastErr != nil || last.Seq <= k.head.Seq {
			k.t.Log(err)
			return false
		}
		k.head = last
		return true
	})
}

// become appends a record after a change of the summary.
func (k *book) become(change func(*forge.Summary)) {
	k.t.Helper()
	k.becomeBy(&forge.Edit{}, change)
}

// becomeBy is become by a message of a person.
func (k *book) becomeBy(m forge.Message, change func(*forge.Summary)) {
	k.t.Helper()
	change(&k.now)
	k.write(forge.Event{ID: fmt.Sprint(k.head.Seq), To: k.key, Message: m})
}

func (k *book) task(status forge.TaskStatus) []forge.TaskSummary {
	return []forge.TaskSummary{{ID: forge.NewTaskID(k.key.Intent, 1), Title: "one", Status: status}}
}

// tellChanges runs a publisher until what it returns is called.
func tellChanges(t testing.TB, b *bus.Bus) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Changes.Publish(ctx) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// published waits for n messages of FORGE_EVENTS, and returns all of them.
func published(t testing.TB, s *bustest.Server, n uint64) (list []*jetstream.RawStreamMsg) {
	t.Helper()
	// Without a deadline each request has the client's own. A server that restarts may leave one
	// unanswered for good.
	ctx := t.Context()
	js, err := jetstream.New(raw(t, s))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, "FORGE_EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	wait.Until(t, "the changes are published", func() bool {
		info, err := stream.Info(ctx)
		if err == nil {
			last = info.State.LastSeq
		}
		return err == nil && last >= n
	})
	for seq := uint64(1); seq <= last; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

func whats(list []*jetstream.RawStreamMsg) (names []string) {
	for _, m := range list {
		names = append(names, strings.TrimPrefix(m.Subject, "forge.event.shop."))
	}
	return names
}

// life takes an intent through everything that is told.
func (k *book) life() []string {
	k.become(func(s *forge.Summary) { s.Activity = "analyzing" }) // nothing that is told
	k.become(func(s *forge.Summary) { s.Waiting = forge.WaitingClarification })
	k.become(func(s *forge.Summary) { s.Waiting = "" })
	k.become(func(s *forge.Summary) { s.TaskCount, s.Plan, s.Waiting = 2, "p1", forge.WaitingApproval })
	k.become(func(s *forge.Summary) { s.Plan = "p2" })
	k.becomeBy(&forge.Approve{Plan: "p2"}, func(s *forge.Summary) { s.Status, s.Waiting = forge.StatusExecuting, "" })
	k.become(func(s *forge.Summary) { s.Tasks = k.task(forge.TaskImplementing) })
	k.become(func(s *forge.Summary) { s.Tasks = k.task(forge.TaskFailed) })
	k.become(func(s *forge.Summary) { s.Status, s.Waiting = forge.StatusBlocked, forge.WaitingFailed })
	k.become(func(s *forge.Summary) {
		s.Run, s.Status, s.Waiting, s.Tasks = 2, forge.StatusExecuting, "", k.task(forge.TaskImplementing)
	})
	k.become(func(s *forge.Summary) { s.Goal = &forge.GoalSummary{Iteration: 1, Used: 1, Most: 3, Criteria: 2} })
	k.become(func(s *forge.Summary) {
		s.Goal = &forge.GoalSummary{Iteration: 2, Used: 2, Most: 3, Criteria: 2, Met: 1}
	})
	k.become(func(s *forge.Summary) { s.Waiting = forge.WaitingBudget })
	k.become(func(s *forge.Summary) { s.Waiting, s.Tasks, s.TasksDone, s.Status = "", nil, 1, forge.StatusDone })
	k.become(func(s *forge.Summary) { s.Idle = true })
	var want []string
	for _, w := range []changes.Kind{
		changes.Submitted, changes.Waiting, changes.Resumed, changes.Planned, changes.Waiting, changes.Planned, changes.Waiting,
		changes.Approved, changes.Executing, changes.KindTaskFailed, changes.Blocked, changes.Resumed, changes.Executing, changes.Iterated, changes.Waiting,
		changes.KindTaskDone, changes.Done,
	} {
		want = append(want, string(k.key.Intent)+"."+string(w))
	}
	return want
}

func TestChangesAreTold(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	tellChanges(t, b)
	want := newBook(t, b, "a").life()
	list := published(t, s, uint64(len(want)))
	if diff := cmp.Diff(want, whats(list)); diff != "" {
		t.Fatal(diff)
	}
	var got map[string]any
	if err := json.Unmarshal(list[9].Data, &got); err != nil {
		t.Fatal(err)
	}
	at := "2026-01-02T03:04:05Z"
	if diff := cmp.Diff(map[string]any{
		"specversion": "1.0", "id": "shop/a/9/0-task-failed", "source": "/pfl-forge/shop", "type": "io.pfl-forge.intent.task-failed.v1",
		"subject": "a", "time": at, "datacontenttype": "application/json",
		"data": map[string]any{
			"project": "shop", "intent": "a", "title": "a", "source": "system", "status": "executing", "activity": "analyzing", "plan": "p2", "run": 1.0,
			"tasks": 2.0, "tasks_done": 0.0, "cost_usd": 0.0, "created_at": "0001-01-01T00:00:00Z", "updated_at": at,
			"origin": map[string]any{"system": "ci", "event_id": "e-a"},
			"task":   map[string]any{"id": "a-001", "title": "one", "status": "failed"},
		},
	}, got); diff != "" {
		t.Error(diff)
	}
	if ct := list[9].Header.Get("Content-Type"); ct != "application/cloudevents+json" {
		t.Errorf("content type %q", ct)
	}
}

// Publishers come and go, two at a time, and the server restarts: what they tell is
// complete, in order, and nothing is told twice.
func TestChangesAreToldOnce(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b, other := s.Connect(t), s.Connect(t)
	want := map[string][]string{}
	total := 0
	stops := []func(){tellChanges(t, b)}
	for i := range 12 {
		k := newBook(t, b, forge.IntentID(fmt.Sprintf("i%d", i)))
		want[string(k.key.Intent)] = k.life()
		total += len(want[string(k.key.Intent)])
		switch i % 4 {
		case 0:
			stops = append(stops, tellChanges(t, other))
		case 1:
			stops[0]()
			stops = stops[1:]
		case 2:
			stops = append(stops, tellChanges(t, b))
		case 3:
			if i == 7 {
				s.Restart(t)
			}
			stops[0]()
			stops = stops[1:]
		}
	}
	list := published(t, s, uint64(total))
	if len(list) != total {
		t.Errorf("%d changes are told, want %d", len(list), total)
	}
	for id, each := range want {
		var got []string
		for _, w := range whats(list) {
			if strings.HasPrefix(w, id+".") {
				got = append(got, w)
			}
		}
		if !slices.Equal(got, each) {
			t.Errorf("%s: %v", id, cmp.Diff(each, got))
		}
	}
	ids := map[string]bool{}
	for _, m := range list {
		var ev struct{ ID string }
		if err := json.Unmarshal(m.Data, &ev); err != nil {
			t.Fatal(err)
		}
		ids[ev.ID] = true
	}
	if len(ids) != total {
		t.Errorf("%d ids for %d changes", len(ids), total)
	}
}

// A cluster loses servers while two runners publish: nothing is lost, nothing is told
// twice.
func TestClusterTellsOnce(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	// Without a deadline each request has the client's own: one that comes while a stream has no
	// leader is never answered.
	ctx := t.Context()
	servers, urls := cluster(t)
	var buses []*bus.Bus
	for range 2 {
		b, err := bus.Connect(ctx, bus.Config{URL: urls, Replicas: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		buses = append(buses, b)
	}
	if err := buses[0].Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(urls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js := jetStream(t, nc)
	for _, b := range buses {
		tellChanges(t, b)
	}
	var want []string
	for i := range 6 {
		if i == 2 {
			stream, err := js.Stream(ctx, "FORGE_EVENTS")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range servers {
				if s.Name() == stream.CachedInfo().Cluster.Leader {
					s.Shutdown()
				}
			}
		}
		want = append(want, newBook(t, buses[0], forge.IntentID(fmt.Sprintf("i%d", i))).life()...)
	}
	var got []string
	wait.Until(t, "the changes are published", func() bool {
		stream, err := js.Stream(ctx, "FORGE_EVENTS")
		if err != nil || stream.CachedInfo().State.LastSeq < uint64(len(want)) {
			return false
		}
		got = nil
		for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
			m, err := stream.GetMsg(ctx, seq)
			if err != nil {
				return false
			}
			got = append(got, strings.TrimPrefix(m.Subject, "forge.event.shop."))
		}
		return true
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A publisher that ends tells first what was decided before.
func TestLastChangesAreTold(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stop := tellChanges(t, b)
	total := len(newBook(t, b, "first").life())
	published(t, s, uint64(total)) // it is at work
	for i := range 20 {
		total += len(newBook(t, b, forge.IntentID(fmt.Sprintf("i%d", i))).life())
	}
	stop()
	js, err := jetstream.New(raw(t, s))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, "FORGE_EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != uint64(total) {
		t.Errorf("%d changes are told, want %d", got, total)
	}
}

// What somebody else puts where changes are told, garbage in a journal, and texts that
// are far too long hold nothing up.
func TestChangesAreToldAllTheSame(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stop := tellChanges(t, b)
	newBook(t, b, "a")
	published(t, s, 1)
	stop()
	nc := raw(t, s)
	for range 3 {
		put(t, nc, "forge.event.shop.a.done", []byte("not ours"))
	}
	put(t, nc, "forge.journal.shop.garbage", []byte("\xff\xff"))
	k := newBook(t, b, "b")
	k.become(func(s *forge.Summary) { s.Waiting, s.Reason = forge.WaitingApproval, strings.Repeat("é", 1<<20) })
	put(t, nc, "forge.journal.shop.garbage", []byte("\xff\xff"))
	stop = tellChanges(t, b)
	list := published(t, s, 6)
	want := []string{"a.submitted", "a.done", "a.done", "a.done", "b.submitted", "b.waiting"}
	if diff := cmp.Diff(want, whats(list)); diff != "" {
		t.Error(diff)
	}
	if n := len(list[len(list)-1].Data); n > 20_000 {
		t.Errorf("a change of %d bytes", n)
	}
	stop()
	told := len(list)
	wait.Until(t, "a publisher ends at once: garbage at a journal's end is not waited for", func() bool {
		newBook(t, b, forge.IntentID(fmt.Sprintf("c%d", told)))
		told++
		put(t, nc, "forge.journal.shop.garbage", []byte("\xff\xff"))
		stop := tellChanges(t, b)
		published(t, s, uint64(told)) // it is at work
		began := time.Now()
		stop()
		return time.Since(began) < 2*time.Second
	})
}
