package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// TestSnapshotAtStart has a runner keep snapshots while intents end, and be gone. Those
// that come after it read only what the journal has since, and are in the state of
// those that fold it all. Then the snapshot does not fit, in each way that there is.
func TestSnapshotAtStart(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	key := forge.Key{Project: project}
	stop := runUntil(t, s.Connect(t), 10)
	startWorkers(t, b, succeed)
	ids := submitSome(t, b, "a", 6)
	await(t, b, forge.StatusDone, ids...)
	wait.Until(t, "a new snapshot is kept", func() bool { return load(t, b, 10).Folded < 20 })
	stop()
	all := folded(t, b)
	l := load(t, s.Connect(t), 10)
	if l.Whole != "" || l.Folded >= 20 || l.Folded >= all.Folded || l.Head != all.Head {
		t.Errorf("%d of %d records were folded, up to %v of %v, because %q", l.Folded, all.Folded, l.Head, all.Head, l.Whole)
	}
	if got, want := stateOf(t, l), stateOf(t, all); got != want {
		t.Errorf("the state is %s, want %s", got, want)
	}

	for _, c := range []struct {
		what, why string
		change    func(*machine.Snapshot)
	}{
		{"other rules", "made by other rules", func(s *machine.Snapshot) { s.Rules = "other" }},
		{"another history", "another history", func(s *machine.Snapshot) { s.Hash = chain.Start("x") }},
		{"no history", "another history", func(s *machine.Snapshot) { s.Seq = 0 }},
		{"a later history", "another history", func(s *machine.Snapshot) { s.Seq = all.Head.Seq + 7 }},
		{"a longer history", "had more messages", func(s *machine.Snapshot) { s.Messages++ }},
		{"another state", "not the state of its record", func(s *machine.Snapshot) { s.State = []byte(`{}`) }},
		{"no state", "damaged", func(s *machine.Snapshot) { s.State = []byte(`[]`) }},
	} {
		shelf := &onShelf{made: snapshotOf(t, l)}
		c.change(shelf.made)
		d := machine.NewDriver(journalOf{b.Journal}, b.Effects, time.Now, 1)
		d.Resume(shelf)
		got, err := d.Load(t.Context(), key)
		if err != nil || !strings.Contains(got.Whole, c.why) || got.Folded != all.Folded || stateOf(t, got) != stateOf(t, all) {
			t.Errorf("%s: loaded %+v, %v; want that the whole journal was folded because of %q", c.what, got, err, c.why)
		}
	}

	// Whatever the object is, a runner starts, says so, and makes another one.
	put(t, b, "garbage")
	var log bytes.Buffer
	var mu sync.Mutex
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = runner.Run(ctx, runner.Config{
			Bus: s.Connect(t), SnapshotEvery: 10, Log: slog.New(slog.NewTextHandler(&locked{Buffer: &log, mu: &mu}, nil)),
		})
	}()
	wait.Until(t, "another snapshot takes the place of garbage", func() bool { return load(t, b, 10).Whole == "" })
	end()
	<-ended
	if !strings.Contains(log.String(), "level=INFO") || !strings.Contains(log.String(), "the snapshot cannot be read") {
		t.Errorf("the runner says: %s", log.String())
	}
}

// TestSnapshotOfShorterJournal removes a message of a journal that a snapshot
// covers. It is noticed as without a snapshot, and nothing is decided.
func TestSnapshotOfShorterJournal(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	stop := runUntil(t, s.Connect(t), 5)
	startWorkers(t, b, succeed)
	await(t, b, forge.StatusDone, submitSome(t, b, "a", 3)...)
	wait.Until(t, "a snapshot is kept", func() bool { return len(kept(t, b)) == 1 })
	stop()
	forget(t, s, "forge.project.web")
	d := machine.NewDriver(journalOf{b.Journal}, b.Effects, time.Now, 1)
	d.Resume(runner.Snapshots(b, 5))
	if _, err := d.Load(t.Context(), forge.Key{Project: project}); err == nil || !strings.Contains(err.Error(), "chain") {
		t.Errorf("it is loaded, with %v", err)
	}
}

// TestSilentStoreOfSnapshots: a decision waits a moment for a store that does not
// answer, and the next one not at all; after a while the store is asked again.
func TestSilentStoreOfSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelf := &silentShelf{}
		now := time.Now()
		d := machine.NewDriver(emptyJournal{}, nil, func() time.Time { return now }, 1)
		d.Resume(shelf)
		for i, c := range []struct {
			pass  time.Duration
			asked int
		}{{0, 1}, {0, 1}, {50 * time.Second, 1}, {20 * time.Second, 2}, {0, 2}} {
			now = now.Add(c.pass)
			began := time.Now()
			l, err := d.Load(t.Context(), forge.Key{Project: project})
			if err != nil || l.Whole == "" || shelf.asked != c.asked || time.Since(began) > 2*time.Second {
				t.Errorf("%d: after %v: %+v, %v; asked %d times, want %d", i, time.Since(began), l, err, shelf.asked, c.asked)
			}
		}
	})
}

// emptyJournal has nothing yet.
type emptyJournal struct{ machine.Journal }

func (emptyJournal) After(context.Context, forge.Key, uint64) (chain.Tail, error) {
	return chain.Tail{}, nil
}

// silentShelf never answers.
type silentShelf struct {
	onShelf

	asked int
}

func (s *silentShelf) Newest(ctx context.Context, _ forge.Key) (*machine.Snapshot, error) {
	s.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

// locked is a buffer of a log that several goroutines write.
type locked struct {
	*bytes.Buffer

	mu *sync.Mutex
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

// onShelf has one snapshot.
type onShelf struct{ made *machine.Snapshot }

func (s *onShelf) Newest(context.Context, forge.Key) (*machine.Snapshot, error) { return s.made, nil }

func (s *onShelf) Keep(_ context.Context, _ forge.Key, made *machine.Snapshot) error {
	s.made = made
	return nil
}

// snapshotOf returns the snapshot that is made of a machine.
func snapshotOf(t *testing.T, l *machine.Loaded) *machine.Snapshot {
	t.Helper()
	d, s := machine.NewDriver(nil, nil, time.Now, 1), &onShelf{}
	d.Resume(s)
	if err := d.Keep(t.Context(), forge.Key{Project: project}, l); err != nil {
		t.Fatal(err)
	}
	return s.made
}

// runUntil runs a runner that keeps snapshots, until stop is called.
func runUntil(t *testing.T, b *bus.Bus, every int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := runner.Run(ctx, runner.Config{Bus: b, SnapshotEvery: every, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Error(err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

// submitSome submits intents.
func submitSome(t *testing.T, b *bus.Bus, name string, n int) (ids []forge.IntentID) {
	t.Helper()
	for i := range n {
		id := forge.IntentID(fmt.Sprintf("%s%d", name, i))
		if ruling, err := b.Submissions.Ask(t.Context(), submission(id)); err != nil || ruling.Decision != forge.Applied {
			t.Fatal(ruling, err)
		}
		ids = append(ids, id)
	}
	return ids
}

// kept lists the snapshots of all projects.
func kept(t *testing.T, b *bus.Bus) []objects.Info {
	t.Helper()
	list, err := b.Objects.List(t.Context(), objects.Name{Kind: objects.Snapshot})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// put replaces the snapshots of all projects.
func put(t *testing.T, b *bus.Bus, content string) {
	t.Helper()
	for _, o := range kept(t, b) {
		if err := b.Objects.Put(t.Context(), o.Name, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
}

// folded loads the project from its whole journal.
func folded(t *testing.T, b *bus.Bus) *machine.Loaded {
	t.Helper()
	l, err := machine.NewDriver(journalOf{b.Journal}, b.Effects, time.Now, 1).Load(t.Context(), forge.Key{Project: project})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// load loads the project as a runner does that starts.
func load(t *testing.T, b *bus.Bus, every int) *machine.Loaded {
	t.Helper()
	d := machine.NewDriver(journalOf{b.Journal}, b.Effects, time.Now, 1)
	d.Resume(runner.Snapshots(b, every))
	l, err := d.Load(t.Context(), forge.Key{Project: project})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stateOf returns the state of a machine.
func stateOf(t *testing.T, l *machine.Loaded) string {
	t.Helper()
	data, err := l.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
