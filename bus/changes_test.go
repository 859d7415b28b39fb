package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// A follower gets what changes while it is away, once.
func TestFollowers(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	tellChanges(t, b)
	cfg := changes.Follower{Name: "chat", Whats: []changes.Kind{changes.Done, changes.Blocked}}
	if err := b.Changes.AddFollower(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	newBook(t, b, "a").life()
	var got []string
	for range 2 {
		following, stop := context.WithCancel(ctx)
		err := b.Changes.Follow(following, cfg, func(told *changes.Delivered) {
			if len(got) == 3 {
				t.Error("one more came")
			}
			got = append(got, told.ID+" "+string(told.Kind)+" "+string(told.Status)+" "+told.Origin.EventID)
			if err := told.Done(); err != nil {
				t.Error(err)
			}
			if len(got) > 1 {
				stop()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		newBook(t, b, forge.IntentID(fmt.Sprint("b", len(got))))
		if len(got) == 2 {
			k := newBook(t, b, "c")
			k.become(func(s *forge.Summary) { s.Status = forge.StatusDone })
		}
	}
	want := []string{"shop/a/10/0-blocked blocked blocked e-a", "shop/a/15/1-done done done e-a", "shop/c/19/0-done done done e-c"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []changes.Follower{{Name: ""}, {Name: "a.b"}, {Name: "a", Whats: []changes.Kind{"exploded"}}} {
		if err := b.Changes.AddFollower(ctx, bad); err == nil {
			t.Errorf("%+v was added", bad)
		}
	}
}

// TestWatchAfterAQuietMonth goes on after the last change when all of them are
// gone, and not after one that never was.
func TestWatchAfterAQuietMonth(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	tellChanges(t, b)
	newBook(t, b, "a")
	last := uint64(len(published(t, s, 1)))
	js, err := jetstream.New(raw(t, s))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "FORGE_EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxAge, cfg.Duplicates = 100*time.Millisecond, 100*time.Millisecond // in place of a month
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "all changes are gone", func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == 0
	})
	ctx, cancel := context.WithCancel(wait.Context(t))
	defer cancel()
	if err := b.Changes.Watch(ctx, "shop", last+1, cancel, nil); !errors.Is(err, changes.ErrPosition) {
		t.Errorf("after a change that never was: %v", err)
	}
	if err := b.Changes.Watch(ctx, "shop", last, cancel, nil); err != nil {
		t.Errorf("after the last change: %v", err)
	}
}
