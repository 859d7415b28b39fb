package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/turns"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// issue journals that an intent waits for the results of commands, and dispatches them.
func issue(t *testing.T, b *bus.Bus, list ...forge.Command) {
	t.Helper()
	to := list[0].To
	rec := forge.Record{Summary: forge.Summary{Key: to, Status: forge.StatusProposed}}
	for i := range list {
		rec.Summary.Open = append(rec.Summary.Open, list[i].Attempt)
	}
	if _, err := b.Journal.Append(wait.Context(t), to, chain.Head{}, rec); err != nil {
		t.Fatal(err)
	}
	if err := b.Effects.Dispatch(wait.Context(t), to, forge.Effects{Commands: list}); err != nil {
		t.Fatal(err)
	}
}

// takeTurns has projects take turns on a connection, with a bound of calls, until the test ends.
func takeTurns(t *testing.T, b *bus.Bus, bound int) {
	t.Helper()
	b.Turns.Begin(bound)
	if err := b.Turns.Restore(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Turns.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// several returns n commands of an intent.
func several(n int) (list []forge.Command) {
	for i := range n {
		list = append(list, command(i+1))
	}
	return list
}

// atOnce takes five commands at a time, says of each that it has begun, and
// lets it end when the test says so.
func atOnce(t *testing.T, b *bus.Bus) (begun chan int, end chan struct{}) {
	t.Helper()
	begun, end = make(chan int, 100), make(chan struct{})
	consume(t, b, work.Config{Parallel: 5}, func(ctx context.Context, j *work.Job) error {
		begun <- j.Command.Attempt.Number
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return begun, end
}

// TestCounters: a runner's account may do all that turns need, and no other has
// to. For each step whose commands may wait there is a consumer that counts those.
func TestCounters(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	b := connectAs(ctx, t, s, "runner", "RUNNER")
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	takeTurns(t, b, 2)
	admin, _ := as(t, s, "admin")
	stream, err := jetStream(t, admin).Stream(ctx, "FORGE_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range forge.Steps() {
		_, err := stream.Consumer(ctx, string(step)+"-held")
		if there := err == nil; there != turns.Takes(step) {
			t.Errorf("step %s has a counter: %v", step, there)
		}
	}
	begun, end := atOnce(t, connectAs(ctx, t, s, "analyzer", "ANALYZER"))
	issue(t, b, several(7)...)
	wait.For(t, begun)
	wait.For(t, begun)
	wait.Until(t, "five wait", func() bool {
		state, err := b.Turns.Of(ctx, "shop")
		if err != nil {
			t.Fatal(err)
		}
		c, err := stream.Consumer(ctx, "analyze-held")
		return err == nil && c.CachedInfo().NumPending == 5 && state != nil && *state == turns.State{Held: 5, Calls: 2, Bound: 2}
	})
	if len(begun) > 0 {
		t.Error("more than two have begun")
	}
	// The journal here wants all of them for ever.
	for want := 3; want <= 7; want++ {
		end <- struct{}{}
		if got := wait.For(t, begun); got != want {
			t.Errorf("begun is %d, want %d", got, want)
		}
	}
	close(end)
	wait.Until(t, "nothing waits", func() bool {
		state, err := b.Turns.Of(ctx, "shop")
		return err == nil && state == nil
	})
}

// TestHeldGarbage: what is no command, is a copy from elsewhere, or is wanted
// by nobody goes, and those behind it are moved on.
func TestHeldGarbage(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b, nc := s.Connect(t), raw(t, s)
	for i, subject := range []string{
		"forge.command.analyze.held.any.shop.fix-login", "forge.command.analyze.held.x.shop.fix-login.-.1.1", "forge.command.nothing.held.any.shop.fix-login.-.1.1",
		"forge.command.analyze.held.any.shop.fix-login.-.01.1", "forge.command.analyze.held.any.shop.fix-login.-.9.1",
		"forge.command.analyze.held.any.shop.FIX.-.9.1.r",
	} {
		put(t, nc, subject, fmt.Append(nil, "garbage", i))
	}
	takeTurns(t, b, 1)
	begun, end := atOnce(t, s.Connect(t))
	issue(t, b, several(3)...)
	for want := 1; want <= 3; want++ {
		if got := wait.For(t, begun); got != want {
			t.Errorf("begun is %d, want %d", got, want)
		}
		end <- struct{}{}
	}
	wait.Until(t, "nothing is left", func() bool {
		left := commandsStored(t.Context(), t, nc)
		return left == 1 // the mark of the turn
	})
}

// TestCallTakenOver: a call for a replica that is gone is carried out by
// another one, which cannot take its command away. It is no call any more when
// its result is decided on, and the next one begins.
func TestCallTakenOver(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	takeTurns(t, b, 1)
	list := several(2)
	list[0].Replica = "gone"
	issue(t, b, list...)
	other := s.Connect(t)
	begun, end := atOnce(t, other)
	var jobs []*work.Job
	wait.Until(t, "the call is found", func() (found bool) {
		var err error
		if jobs, err = other.Commands.Unattended(wait.Context(t), forge.StepAnalyze, "r"); err != nil {
			t.Fatal(err)
		}
		return len(jobs) > 0
	})
	r := forge.Result{To: list[0].To, Attempt: list[0].Attempt, Replica: "r", Output: &forge.Analysis{}}
	for _, task := range []forge.TaskID{"*", "a.b", ">"} { // of a worker that lies
		lie := r
		lie.Attempt.Task = task
		if err := b.Turns.Answered(wait.Context(t), &lie); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := other.Commands.Unattended(wait.Context(t), forge.StepAnalyze, "r"); err != nil || len(again) != 1 {
		t.Fatalf("there are %d calls, %v", len(again), err)
	}
	if err := b.Turns.Answered(wait.Context(t), &r); err != nil {
		t.Fatal(err)
	}
	if got := wait.For(t, begun); got != 2 {
		t.Errorf("begun is %d, want 2", got)
	}
	close(end)
}

// TestHeldMoves: a project that moves to another group takes along what waits for its turn.
func TestHeldMoves(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	s.Connect(t)
	before := grouped(t, s, subjects.Groups{"shop": "small"})
	before.Turns.Begin(1)
	list := several(3)
	issue(t, before, list...)
	b := grouped(t, s, subjects.Groups{"shop": "large"})
	takeTurns(t, b, 1)
	begun := make(chan string, 10)
	consume(t, s.Connect(t), work.Config{Replica: "l", Group: "large"}, func(_ context.Context, j *work.Job) error {
		begun <- j.Command.ID()
		return nil
	})
	ctx, stop := context.WithCancel(wait.Context(t))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Guard(ctx, func(ctx context.Context) error {
			if err := b.Turns.Restore(ctx); err != nil {
				return err
			}
			return b.Effects.Dispatch(ctx, key, forge.Effects{Commands: list})
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	got := map[string]bool{}
	for len(got) < len(list) {
		got[wait.For(t, begun)] = true
	}
}

// TestIssuedAt: how long a command had to wait for its turn is part of how long it waited.
func TestIssuedAt(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	b.Turns.Begin(1)
	issue(t, b, command(1))
	stream, err := jetStream(t, raw(t, s)).Stream(t.Context(), "FORGE_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	held, err := stream.GetLastMsgForSubject(t.Context(), "forge.command.analyze.held.any.shop.fix-login.-.1.1")
	if err != nil {
		t.Fatal(err)
	}
	takeTurns(t, b, 1)
	jobs := make(chan *work.Job, 1)
	consume(t, s.Connect(t), work.Config{}, func(_ context.Context, j *work.Job) error {
		jobs <- j
		return nil
	})
	if got := wait.For(t, jobs).IssuedAt; !got.Equal(held.Time) {
		t.Errorf("it was issued at %s, want %s", got, held.Time)
	}
}

// TestBegunGoesAhead: where calls are bounded, a command for the replica that
// has begun its task is moved on before those that any may take.
func TestBegunGoesAhead(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	takeTurns(t, b, 1)
	begun, end := atOnce(t, s.Connect(t))
	list := several(4)
	list[3].Replica = "a"
	issue(t, b, list...)
	for i, want := range []int{4, 1, 2, 3} {
		if i > 0 {
			end <- struct{}{}
		}
		if got := wait.For(t, begun); got != want {
			t.Errorf("begun is %d, want %d", got, want)
		}
	}
	close(end)
}

// TestHeldIsNoCommand: no worker's subject matches what waits for its turn.
func TestHeldIsNoCommand(t *testing.T) {
	t.Parallel()
	c := command(1)
	for _, replica := range []forge.ReplicaID{"", "r"} {
		c.Replica = replica
		s, err := (subjects.Groups{}).Hold(&c)
		if err != nil || !strings.Contains(s, ".held.") {
			t.Fatal(s, err)
		}
		if _, err := subjects.ParseCommand(s); err == nil {
			t.Errorf("%q is taken for a command at the workers", s)
		}
	}
}
