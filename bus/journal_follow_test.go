package bus_test

import (
	"context"
	"errors"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestFollow(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	fill(t, b, 10, func(int) forge.Key { return key })
	following, stop := context.WithCancel(ctx)
	project := key.ProjectKey()
	projectHead, err := b.Journal.Append(ctx, project, chain.Head{}, record(project, 0))
	if err != nil {
		t.Fatal(err)
	}
	head, err := b.Journal.Last(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	intents, projects := make(chan uint64, 100), make(chan uint64, 100)
	to := func(seqs chan uint64) func(forge.Key, uint64, forge.Record) error {
		return func(k forge.Key, seq uint64, rec forge.Record) error {
			if rec.Summary.Key != k || k.IsProject() != (seqs == projects) {
				t.Errorf("record %d of %s came as one of %s", seq, rec.Summary.Key, k)
			}
			seqs <- seq
			return nil
		}
	}
	caught := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- b.Journal.Follow(following, "shop", 4, journal.Follower{
			Record: to(intents), Project: to(projects),
			CaughtUp: func() error { close(caught); return nil },
		})
	}()
	wait.For(t, caught)
	if len(intents) != 7 || len(projects) != 1 {
		t.Fatalf("caught up after %d records of intents and %d of projects, want 7 and 1", len(intents), len(projects))
	}
	s.Restart(t)
	for _, next := range []struct {
		key  forge.Key
		head chain.Head
	}{{key, head}, {project, projectHead}} {
		for {
			if _, err := b.Journal.Append(ctx, next.key, next.head, record(next.key, 1)); err == nil || errors.Is(err, bus.ErrConflict) {
				break
			}
		}
	}
	for want := uint64(4); want <= 11; want++ {
		if got := wait.For(t, intents); got != want {
			t.Fatalf("got record %d, want %d", got, want)
		}
	}
	for want := uint64(1); want <= 2; want++ {
		if got := wait.For(t, projects); got != want {
			t.Fatalf("got record %d of the project, want %d", got, want)
		}
	}
	stop()
	if err := wait.For(t, ended); err != nil {
		t.Errorf("following ended with %v", err)
	}
}

func TestFollowEmpty(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	enough := errors.New("enough")
	err := b.Journal.Follow(ctx, "shop", 0, journal.Follower{CaughtUp: func() error { return enough }})
	if !errors.Is(err, enough) {
		t.Errorf("got %v, want the error of the follower", err)
	}
	both := journal.Follower{Project: func(forge.Key, uint64, forge.Record) error { return nil }, CaughtUp: func() error { return enough }}
	if err := b.Journal.Follow(ctx, "shop", 0, both); !errors.Is(err, enough) {
		t.Errorf("got %v, want the error of the follower of both", err)
	}
}
