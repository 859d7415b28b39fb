package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func record(k forge.Key, n int) forge.Record {
	return forge.Record{
		Events:  []forge.Event{{ID: fmt.Sprint("e", n), To: k, Message: &forge.Approve{}}},
		Summary: forge.Summary{Key: k, Title: fmt.Sprint("after ", n), Status: forge.StatusExecuting},
	}
}

// raw is a connection that can send what a Bus never would.
func raw(t testing.TB, s *bustest.Server) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// put stores a message as it is.
func put(t testing.TB, nc *nats.Conn, subject string, data []byte) {
	t.Helper()
	reply, err := nc.Request(subject, data, wait.Patience)
	if err != nil || bytes.Contains(reply.Data, []byte(`"error"`)) {
		t.Fatalf("put on %s: %v %s", subject, err, reply.Data)
	}
}

func TestJournal(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	if recs, seq, err := b.Journal.Load(ctx, key); err != nil || len(recs) != 0 || seq != (chain.Head{}) {
		t.Fatalf("an empty journal is %v, %v, %v", recs, seq, err)
	}
	var last chain.Head
	for n := range 3 {
		for _, k := range []forge.Key{key, key.ProjectKey()} {
			_, seq, err := b.Journal.Load(ctx, k)
			if err != nil {
				t.Fatal(err)
			}
			if last, err = b.Journal.Append(ctx, k, seq, record(k, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	recs, seq, err := b.Journal.Load(ctx, key.ProjectKey())
	if err != nil || seq != last || len(recs) != 3 || recs[2].Events[0].ID != "e2" || recs[0].Events[0].To != key.ProjectKey() {
		t.Errorf("got %+v, %v, %v; want three records up to %v", recs, seq, err, last)
	}
	if got, err := b.Journal.Last(ctx, key.ProjectKey()); err != nil || got != last {
		t.Errorf("last is %v, %v, want %v", got, err, last)
	}
	if got, err := b.Journal.Last(ctx, forge.Key{Project: "shop", Intent: "other"}); err != nil || got != (chain.Head{}) {
		t.Errorf("last of an empty journal is %v, %v", got, err)
	}
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, record(key, 9)); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("appending to what was read as empty: %v", err)
	}
}

func TestAppendRace(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	const racers, rounds = 50, 5
	buses := []*bus.Bus{s.Connect(t), s.Connect(t), s.Connect(t)}
	var seq chain.Head
	for round := range rounds {
		var wins atomic.Int32
		var won atomic.Pointer[chain.Head]
		var wg sync.WaitGroup
		for i := range racers {
			wg.Go(func() {
				n, err := buses[i%len(buses)].Journal.Append(ctx, key, seq, record(key, i))
				switch {
				case err == nil:
					wins.Add(1)
					won.Store(&n)
				case !errors.Is(err, bus.ErrConflict):
					t.Errorf("racer %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Fatalf("round %d has %d winners", round, wins.Load())
		}
		seq = *won.Load()
	}
	if recs, last, err := buses[0].Journal.Load(ctx, key); err != nil || len(recs) != rounds || last != seq {
		t.Errorf("the journal has %d records up to %v, %v", len(recs), last, err)
	}
}

func TestLoadLong(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	const n = 5000
	fill(t, b, n, func(int) forge.Key { return key })
	start := time.Now()
	recs, _, err := b.Journal.Load(ctx, key)
	if err != nil || len(recs) != n {
		t.Fatalf("loaded %d, %v", len(recs), err)
	}
	t.Logf("%d records in %v", n, time.Since(start))
	for i, r := range recs {
		if r.Events[0].ID != fmt.Sprint("e", i) {
			t.Fatalf("record %d is %s", i, r.Events[0].ID)
		}
	}
}

// fill appends n records, to journals that key picks.
func fill(t testing.TB, b *bus.Bus, n int, key func(int) forge.Key) {
	t.Helper()
	heads := map[forge.Key]chain.Head{}
	for i := range n {
		k := key(i)
		head, err := b.Journal.Append(context.Background(), k, heads[k], record(k, i))
		if err != nil {
			t.Fatal(err)
		}
		heads[k] = head
	}
}

func TestGarbageInJournal(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, record(key, 0)); err != nil {
		t.Fatal(err)
	}
	put(t, raw(t, s), "forge.journal.shop.fix-login", []byte("\xff\xff not a record"))
	for range 2 {
		recs, head, err := b.Journal.Load(ctx, key)
		if err != nil || len(recs) != 1 || head.Seq != 2 || head.Broken != nil {
			t.Fatalf("got %d records up to %v, %v; want one, and the garbage counted", len(recs), head, err)
		}
	}
	put(t, raw(t, s), "forge.journal.shop.nobody", nil)
	want := record(key, 0).Summary
	if sum, err := b.Journal.Summary(ctx, key); err != nil || sum.Key != want.Key || sum.Status != want.Status {
		t.Errorf("the summary is %+v, %v; want that of the record before the garbage", sum, err)
	}
	if list, err := b.Journal.Summaries(ctx, key.Project); err != nil || len(list) != 1 || list[0].Key != want.Key {
		t.Errorf("the list is %+v, %v", list, err)
	}
	_, head, err := b.Journal.Load(ctx, key)
	if err == nil {
		_, err = b.Journal.Append(ctx, key, head, record(key, 1))
	}
	if _, head, again := b.Journal.Load(ctx, key); err != nil || again != nil || head.Broken != nil {
		t.Errorf("the machine cannot go on: %v, %v, %v", err, again, head)
	}
	dead, err := b.Dead(ctx)
	if err != nil || len(dead) != 2 || dead[0].Subject != "forge.journal.shop.fix-login" || dead[0].Seq != 2 ||
		!bytes.Contains(dead[0].Excerpt, []byte("not a record")) || dead[0].At.IsZero() {
		t.Errorf("dead letters: %+v, %v", dead, err)
	}
}

// TestForgedHeaders checks that what the server says of a message is not mixed up
// with what its publisher says.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	fill(t, b, 2, func(int) forge.Key { return key })
	forged := nats.NewMsg("forge.journal.shop.fix-login")
	forged.Header.Set("Nats-Sequence", "1")
	forged.Header.Set("Nats-Subject", "forge.journal.shop.other")
	if _, err := jetStream(t, raw(t, s)).PublishMsg(ctx, forged); err != nil {
		t.Fatal(err)
	}
	if recs, seq, err := b.Journal.Load(ctx, key); err != nil || len(recs) != 2 || seq.Seq != 3 {
		t.Errorf("got %d records up to %v, %v", len(recs), seq, err)
	}
	if list, err := b.Journal.Summaries(ctx, key.Project); err != nil || len(list) != 1 || list[0].Key != key {
		t.Errorf("the list is %+v, %v", list, err)
	}
}

// TestNewerJournal checks that a decision is not taken on half of the truth.
func TestNewerJournal(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	newer := nats.NewMsg("forge.journal.shop.fix-login")
	newer.Data = []byte("\xf8\x3f\x01") // field 1023
	put(t, raw(t, s), newer.Subject, newer.Data)
	if recs, _, err := b.Journal.Load(ctx, key); err != nil || len(recs) > 0 {
		t.Errorf("what no runner stored as a record is not garbage: %d, %v", len(recs), err)
	}
	newer.Header.Set(wire.HeaderKind, wire.KindRecord)
	if _, err := jetStream(t, raw(t, s)).PublishMsg(ctx, newer); err != nil {
		t.Fatal(err)
	}
	var unknown *bus.UnknownError
	if _, _, err := b.Journal.Load(ctx, key); !errors.As(err, &unknown) {
		t.Errorf("got %v, want an UnknownError", err)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	rec := record(key, 0)
	for _, size := range []int{8 << 20, 8<<20 - 1000} {
		rec.Summary.Reason = strings.Repeat("x", size)
		var large *bus.TooLargeError
		if _, err := b.Journal.Append(ctx, key, chain.Head{}, rec); !errors.As(err, &large) {
			t.Errorf("got %v, want a TooLargeError", err)
		}
	}
	rec.Summary.Reason = strings.Repeat("x", 8<<20-5000)
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, rec); err != nil {
		t.Error(err)
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	const n = 1000
	fill(t, b, 2*n, func(i int) forge.Key {
		return forge.Key{Project: "shop", Intent: forge.IntentID(fmt.Sprintf("intent-%04d", i%n))}
	})
	other := forge.Key{Project: "other", Intent: "intent-0001"}
	for _, k := range []forge.Key{other, other.ProjectKey(), key.ProjectKey()} {
		if _, err := b.Journal.Append(ctx, k, chain.Head{}, record(k, 0)); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	list, err := b.Journal.Summaries(ctx, "shop")
	if err != nil || len(list) != n {
		t.Fatalf("got %d summaries, %v", len(list), err)
	}
	t.Logf("%d summaries in %v", n, time.Since(start))
	for i, s := range list {
		if want := fmt.Sprint("after ", n+i); s.Title != want || s.Key.Intent != forge.IntentID(fmt.Sprintf("intent-%04d", i)) {
			t.Fatalf("summary %d is of %s, %q, want %q", i, s.Key, s.Title, want)
		}
	}
	same, last, err := b.Journal.List(ctx, "shop")
	if want, err := b.Journal.Sequences(ctx, "shop"); err != nil || !maps.Equal(last, want) || len(last) != n {
		t.Errorf("%d sequences beside the summaries, %v; want those %d", len(last), err, len(want))
	}
	if diff := cmp.Diff(list, same); err != nil || diff != "" {
		t.Errorf("summaries beside the sequences: %v\n%s", err, diff)
	}
	if ids, err := b.Journal.Intents(ctx, "shop"); err != nil || !slices.Equal(ids, slices.Sorted(maps.Keys(last))) {
		t.Errorf("%d intents, %v", len(ids), err)
	}
	if list, err = b.Journal.Summaries(ctx, ""); err != nil || len(list) != n+1 {
		t.Errorf("all projects have %d summaries, %v", len(list), err)
	}
	if list, err = b.Journal.ProjectSummaries(ctx, ""); err != nil || len(list) != 2 {
		t.Errorf("all projects have %d projects, %v", len(list), err)
	}
	if list, err = b.Journal.ProjectSummaries(ctx, "shop"); err != nil || len(list) != 1 || list[0].Key != key.ProjectKey() {
		t.Errorf("the project has projects %+v, %v", list, err)
	}
	if list, err = b.Journal.Summaries(ctx, "empty"); err != nil || len(list) != 0 {
		t.Errorf("a project without intents has %+v, %v", list, err)
	}
	if _, err := b.Journal.Summary(ctx, key); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("the summary of nothing: %v", err)
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	review := forge.Attempt{Task: "fix-login-001", Step: forge.StepReview, Number: 1, Claim: 2}
	merge := forge.Attempt{Task: "fix-login-001", Step: forge.StepMerge, Number: 1, Claim: 1}
	for k, a := range map[forge.Key]forge.Attempt{key: review, key.ProjectKey(): merge} {
		rec := record(k, 0)
		rec.Summary.Open = []forge.Attempt{a}
		if _, err := b.Journal.Append(ctx, k, chain.Head{}, rec); err != nil {
			t.Fatal(err)
		}
	}
	stale := review
	stale.Claim = 1
	for _, tt := range []struct {
		key  forge.Key
		a    forge.Attempt
		want bool
	}{
		{key, review, true},
		{key, merge, true},
		{key, stale, false},
		{forge.Key{Project: "shop", Intent: "other"}, review, false},
	} {
		if got, err := b.Journal.Wanted(ctx, tt.key, tt.a); err != nil || got != tt.want {
			t.Errorf("%s of %s is wanted: %v, %v", tt.a, tt.key, got, err)
		}
	}
}

// An overview shows what is there, whether something was written since it was
// refreshed or not, and also after somebody has deleted a stream.
func TestOverview(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	o := b.Journal.NewOverview()
	refreshed := func(want int) {
		t.Helper()
		if err := o.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
		if all := o.All(); len(all) != want {
			t.Errorf("it shows %+v, want %d", all, want)
		}
	}
	refreshed(0)
	for n, id := range []forge.IntentID{"one", "two"} {
		k := forge.Key{Project: "shop", Intent: id}
		if _, err := b.Journal.Append(ctx, k, chain.Head{}, record(k, 0)); err != nil {
			t.Fatal(err)
		}
		refreshed(n + 1)
		refreshed(n + 1)
	}
	s.DeleteStream(t, "FORGE_JOURNAL")
	refreshed(0)
}
