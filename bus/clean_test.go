package bus_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// cleaner is an implementer that cleans as the function says, until it is stopped or the
// test ends.
func cleaner(t *testing.T, b *bus.Bus, clean requests.Cleaner) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Leftovers.Serve(ctx, clean); err != nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

// cleans asks until somebody is there to answer.
func cleans(ctx context.Context, t *testing.T, b *bus.Bus, person string, req requests.CleanRequest) (got requests.Cleaned, err error) {
	t.Helper()
	wait.Until(t, "an implementer answers", func() bool {
		got, err = b.Leftovers.Clean(ctx, "shop", person, req)
		return !errors.Is(err, requests.ErrNoImplementer)
	})
	return got, err
}

func TestClean(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if _, err := b.Leftovers.Clean(ctx, "shop", "ada", requests.CleanRequest{}); !errors.Is(err, requests.ErrNoImplementer) {
		t.Errorf("without an implementer: %v", err)
	}
	want := requests.Cleaned{
		Intents: []requests.CleanedIntent{{ID: "a", Status: forge.StatusDone, EndedAt: time.Unix(5, 0).UTC(), Refs: 2, Sessions: 1, Bytes: 7, Removed: true}},
		Kept:    []requests.KeptIntent{{ID: "b", Reason: "is blocked"}}, Next: "b",
	}
	var asked atomic.Int32
	for range 2 { // who share the requests
		cleaner(t, s.Connect(t), func(_ context.Context, p forge.ProjectID, person string, req requests.CleanRequest) (requests.Cleaned, error) {
			asked.Add(1)
			expected := requests.CleanRequest{Intents: []forge.IntentID{"a", "b"}, Before: time.Unix(9, 5).UTC(), After: "0", DryRun: true}
			if diff := cmp.Diff(expected, req); diff != "" || p != "shop" || person != "ada@example.com" {
				t.Errorf("%s of %s asks for %s", person, p, diff)
			}
			return want, nil
		})
	}
	req := requests.CleanRequest{Intents: []forge.IntentID{"a", "b"}, Before: time.Unix(9, 5), After: "0", DryRun: true}
	got, err := cleans(ctx, t, b, "ada@example.com", req)
	if diff := cmp.Diff(want, got); diff != "" || err != nil || asked.Load() != 1 {
		t.Errorf("%v, asked %d\n%s", err, asked.Load(), diff)
	}
}

// What cannot be is told, in the field's words or those of git, and not more of it than a
// person reads.
func TestCleanRefuses(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	fault := errors.New("the origin\nis away " + strings.Repeat("x", 1000))
	entered := make(chan struct{})
	stop := cleaner(t, b, func(ctx context.Context, _ forge.ProjectID, _ string, req requests.CleanRequest) (requests.Cleaned, error) {
		switch {
		case req.After == "wait":
			close(entered)
			<-ctx.Done()
			return requests.Cleaned{}, ctx.Err()
		case req.After != "":
			return requests.Cleaned{}, &forge.FieldError{Reason: "project is not served here"}
		case req.DryRun:
			return requests.Cleaned{}, fault
		}
		var many requests.Cleaned
		for n := range 3 * requests.MaxClean {
			id := forge.IntentID(fmt.Sprintf("i%d", n))
			many.Intents = append(many.Intents, requests.CleanedIntent{ID: id, Status: forge.StatusDone})
			many.Kept = append(many.Kept, requests.KeptIntent{ID: id, Reason: fault.Error()})
		}
		return many, nil
	})
	got, err := cleans(ctx, t, b, "ada", requests.CleanRequest{})
	if err != nil || len(got.Intents) != requests.MaxClean || len(got.Kept) != requests.MaxClean || len(got.Kept[0].Reason) > 500 {
		t.Errorf("an answer without bounds: %d and %d; %v", len(got.Intents), len(got.Kept), err)
	}
	for _, c := range []struct {
		req  requests.CleanRequest
		want string
	}{
		{requests.CleanRequest{DryRun: true}, "the origin is away"},
		{requests.CleanRequest{After: "x"}, "project is not served here"},
		{requests.CleanRequest{Intents: make([]forge.IntentID, requests.MaxClean+1)}, "intents has 101; at most 100"},
		{requests.CleanRequest{Intents: []forge.IntentID{"../x"}}, "intents[0]"},
	} {
		if _, err := b.Leftovers.Clean(ctx, "shop", "ada", c.req); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 20_000 {
			t.Errorf("got %v, want ...%s...", err, c.want)
		}
	}
	for _, wrong := range []string{"*", "a.b", ""} {
		if _, err := b.Leftovers.Clean(ctx, forge.ProjectID(wrong), "ada", requests.CleanRequest{}); err == nil || errors.Is(err, requests.ErrNoImplementer) {
			t.Errorf("project %q: %v", wrong, err)
		}
	}

	// An implementer that ends says so.
	answered := make(chan error, 1)
	go func() {
		_, err := b.Leftovers.Clean(ctx, "shop", "ada", requests.CleanRequest{After: "wait"})
		answered <- err
	}()
	wait.For(t, entered)
	stop()
	if err := wait.For(t, answered); err == nil || !strings.Contains(err.Error(), "is being stopped: ask again") {
		t.Errorf("got %v", err)
	}
}

// Replicas are told what is gone; what is malformed is not passed on.
func TestPublishCleaned(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b, other := s.Connect(t), s.Connect(t)
	type told struct {
		Project forge.ProjectID
		Intents []forge.IntentID
	}
	got := make(chan told, 10)
	if err := other.Live.FollowCleaned(ctx, func(p forge.ProjectID, ids []forge.IntentID) { got <- told{p, ids} }); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, wrong := range []string{"", "x", `{"intents": ["../x"]}`} {
		if err := nc.Publish("forge.cleaned.shop", []byte(wrong)); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Live.PublishCleaned("shop", []forge.IntentID{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(told{"shop", []forge.IntentID{"a", "b"}}, wait.For(t, got)); diff != "" {
		t.Error(diff)
	}
	if b.Live.PublishCleaned("a.b", []forge.IntentID{"a"}) == nil {
		t.Error("a project that is none")
	}
}
