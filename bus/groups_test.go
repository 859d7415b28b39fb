package bus_test

import (
	"context"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// grouped connects a runner that knows groups.
func grouped(t *testing.T, s *bustest.Server, groups subjects.Groups) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URL: s.URL(), Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// of returns a command for a project.
func of(project forge.ProjectID, number int) forge.Command {
	c := command(number)
	c.To.Project = project
	return c
}

// TestGroups: a command reaches the replicas of its project's group and no others, also while
// those are not there yet; a command for one replica reaches that one.
func TestGroups(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := grouped(t, s, subjects.Groups{"shop": "large", "site": "small"})
	if err := b.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	send := func(c forge.Command) {
		t.Helper()
		if err := b.Effects.Dispatch(wait.Context(t), c.To, forge.Effects{Commands: []forge.Command{c}}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 5 { // before anybody is there
		send(of("shop", n+1))
		send(of("site", n+1))
		send(of("docs", n+1))
	}
	wait.Until(t, "the server has counted the commands", func() bool {
		queues, err := b.Commands.Queues(wait.Context(t))
		if err != nil || len(queues) != 3*len(forge.Steps())-4 { // two steps are for anyone, whatever the group
			t.Fatalf("%d queues, %v", len(queues), err)
		}
		waiting := 0
		for _, q := range queues {
			waiting += q.Waiting
		}
		return waiting == 15
	})
	type taken struct {
		replica forge.ReplicaID
		project forge.ProjectID
	}
	jobs := make(chan taken, 100)
	serves := map[forge.ReplicaID]subjects.Group{"a": "large", "b": "large", "c": "small", "d": ""}
	projects := map[subjects.Group]forge.ProjectID{"large": "shop", "small": "site", "": "docs"}
	for replica, group := range serves {
		consume(t, s.Connect(t), work.Config{Replica: replica, Group: group}, func(_ context.Context, j *work.Job) error {
			jobs <- taken{replica, j.Command.To.Project}
			return nil
		})
	}
	for range 15 {
		if got := wait.For(t, jobs); got.project != projects[serves[got.replica]] {
			t.Errorf("replica %s of group %q got a command of %s", got.replica, serves[got.replica], got.project)
		}
	}
	own := of("shop", 9)
	own.Replica = "b"
	send(own)
	if got := wait.For(t, jobs); got.replica != "b" {
		t.Errorf("%+v", got)
	}
	wait.Until(t, "the replicas of a group are ready", func() bool {
		return b.Commands.Ready(t.Context(), forge.StepAnalyze, "large", "a") == nil
	})
	if err := b.Commands.Ready(t.Context(), forge.StepAnalyze, "none", "a"); err == nil {
		t.Error("a group that nobody knows is ready")
	}
}

// TestProjectMoves: when a project is given to another group, or to none, the commands that wait
// for its former replicas are issued again for the new ones, without a restart of whoever has
// them, and those of others stay.
func TestProjectMoves(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	s.Connect(t) // which makes the streams
	moves := []subjects.Groups{{}, {"shop": "large"}, {"shop": "small", "site": "large"}, {}}
	pending := []forge.Command{of("shop", 1), of("docs", 1)}
	for i, groups := range moves {
		ctx, stop := context.WithCancel(wait.Context(t))
		b := grouped(t, s, groups)
		issue := func(ctx context.Context) error {
			for _, c := range pending {
				if err := b.Effects.Dispatch(ctx, c.To, forge.Effects{Commands: []forge.Command{c}}); err != nil {
					return err
				}
			}
			return nil
		}
		ready, ended := make(chan struct{}, 10), make(chan struct{})
		go func() {
			defer close(ended)
			b.Guard(ctx, func(ctx context.Context) error {
				err := issue(ctx)
				ready <- struct{}{}
				return err
			})
		}()
		wait.For(t, ready)
		// Nothing is twice: all that waits are the two commands, each once.
		wait.Until(t, "the commands wait once, for whom they are", func() bool {
			queues, err := b.Commands.Queues(ctx)
			waiting := 0
			for _, q := range queues {
				waiting += q.Waiting
			}
			return err == nil && waiting == len(pending)
		})
		stop()
		<-ended
		if i+1 < len(moves) {
			continue
		}
		got := make(chan forge.ProjectID, 10)
		consume(t, s.Connect(t), work.Config{Replica: "d"}, func(_ context.Context, j *work.Job) error {
			got <- j.Command.To.Project
			return nil
		})
		if one, two := wait.For(t, got), wait.For(t, got); one == two {
			t.Errorf("got the command of %s twice", one)
		}
	}
}

// TestProjectMovedByOthers: a runner that was not told of a group yet issues a command for the
// former replicas; the one that knows issues it again for the new ones.
func TestProjectMovedByOthers(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	s.Connect(t)
	ctx, stop := context.WithCancel(wait.Context(t))
	defer stop()
	b := grouped(t, s, subjects.Groups{"shop": "large"})
	taken := make(chan forge.ProjectID, 10)
	consume(t, s.Connect(t), work.Config{Replica: "l", Group: "large"}, func(_ context.Context, j *work.Job) error {
		taken <- j.Command.To.Project
		return nil
	})
	again, guarded := of("shop", 2), make(chan struct{}, 10)
	go b.Guard(ctx, func(ctx context.Context) error {
		defer func() { guarded <- struct{}{} }()
		select {
		case <-guarded: // not at the start
			return b.Effects.Dispatch(ctx, again.To, forge.Effects{Commands: []forge.Command{again}})
		default:
			return nil
		}
	})
	wait.Until(t, "the guard has begun", func() bool { return len(guarded) == 1 })
	before := grouped(t, s, nil)
	if err := before.Effects.Dispatch(ctx, again.To, forge.Effects{Commands: []forge.Command{again}}); err != nil {
		t.Fatal(err)
	}
	if got := wait.For(t, taken); got != "shop" {
		t.Errorf("the new group got a command of %s", got)
	}
}
