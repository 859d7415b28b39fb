package bus_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// A follower gets what changes while it is away, once.
func TestFollowers(t *testing.T) {
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
