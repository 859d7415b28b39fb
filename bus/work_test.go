package bus_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func dispatch(t testing.TB, b *bus.Bus, list ...forge.Command) {
	t.Helper()
	if err := b.Effects.Dispatch(wait.Context(t), key, forge.Effects{Commands: list}); err != nil {
		t.Fatal(err)
	}
}

func TestOwnCommands(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	type taken struct {
		replica forge.ReplicaID
		number  int
	}
	jobs := make(chan taken, 10)
	for _, replica := range []forge.ReplicaID{"a", "b"} {
		consume(t, b, work.Config{Replica: replica}, func(_ context.Context, j *work.Job) error {
			jobs <- taken{replica, j.Command.Attempt.Number}
			return nil
		})
	}
	for n := range 20 {
		cmd := command(n + 1)
		cmd.Replica = "b"
		dispatch(t, b, cmd)
		if got := wait.For(t, jobs); got.replica != "b" || got.number != n+1 {
			t.Errorf("command %d for b was taken by %+v", n+1, got)
		}
	}
}

// TestParallel checks that a replica never runs more than it may, that a command
// which it has no room for goes to another one, and that its own wait for it.
func TestParallel(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	var running atomic.Int32
	started := make(chan int, 10)
	finish := make(chan struct{})
	consume(t, b, work.Config{Replica: "a", Parallel: 2}, func(_ context.Context, j *work.Job) error {
		if running.Add(1) > 2 {
			t.Error("more than two at the same time")
		}
		defer running.Add(-1)
		started <- j.Command.Attempt.Number
		<-finish
		return nil
	})
	dispatch(t, b, command(1), command(2))
	wait.For(t, started)
	wait.For(t, started)
	own := command(4)
	own.Replica = "a"
	dispatch(t, b, command(3), own)
	elsewhere := make(chan int, 10)
	consume(t, b, work.Config{Replica: "b"}, func(_ context.Context, j *work.Job) error {
		elsewhere <- j.Command.Attempt.Number
		return nil
	})
	if got := wait.For(t, elsewhere); got != 3 {
		t.Errorf("the other replica took %d", got)
	}
	close(finish)
	if got := wait.For(t, started); got != 4 {
		t.Errorf("the replica went on with %d", got)
	}
}

// TestLimit checks the limit over all replicas.
func TestLimit(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	var running, most atomic.Int32
	done := make(chan struct{}, 20)
	for _, replica := range []forge.ReplicaID{"a", "b", "c"} {
		consume(t, b, work.Config{Replica: replica, Parallel: 5, Limit: 2}, func(context.Context, *work.Job) error {
			n := running.Add(1)
			most.Store(max(most.Load(), n))
			defer running.Add(-1)
			defer func() { done <- struct{}{} }()
			return nil
		})
	}
	for n := range 20 {
		dispatch(t, b, command(n+1))
	}
	for range 20 {
		wait.For(t, done)
	}
	if most.Load() > 2 {
		t.Errorf("%d ran at the same time", most.Load())
	}
}

func TestWorkAgain(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	attempts := make(chan int, 10)
	rec := record(key, 0)
	rec.Summary.Open = []forge.Attempt{command(1).Attempt}
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, rec); err != nil {
		t.Fatal(err)
	}
	consume(t, b, work.Config{}, func(_ context.Context, j *work.Job) error {
		attempts <- j.Attempt
		if wanted, err := j.Wanted(ctx); err != nil || !wanted {
			t.Errorf("the command is wanted: %v, %v", wanted, err)
		}
		if j.Attempt < 4 {
			return bus.Retry(time.Millisecond, errors.New("busy"))
		}
		return nil
	})
	dispatch(t, b, command(1))
	for want := 1; want <= 4; want++ {
		if got := wait.For(t, attempts); got != want {
			t.Errorf("delivery %d says that it is %d", want, got)
		}
	}
}

// TestStop checks that a command whose worker is told to stop at once goes to
// another replica at once.
func TestStop(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	stopping, stop := context.WithCancel(ctx)
	started := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- b.Commands.Consume(stopping, work.Config{Step: forge.StepAnalyze, Replica: "a"}, func(ctx context.Context, _ *work.Job) error {
			close(started)
			<-ctx.Done()
			return ctx.Err()
		})
	}()
	dispatch(t, b, command(1))
	wait.For(t, started)
	stop()
	if err := wait.For(t, ended); err != nil {
		t.Fatal(err)
	}
	again := make(chan int, 1)
	consume(t, b, work.Config{Replica: "b"}, func(_ context.Context, j *work.Job) error {
		again <- j.Attempt
		return nil
	})
	if got := wait.For(t, again); got != 2 {
		t.Errorf("the other replica got delivery %d", got)
	}
}

// TestDrain checks that a draining worker finishes what it has, and takes
// nothing new.
func TestDrain(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	drain := make(chan struct{})
	started := make(chan struct{})
	finish := make(chan struct{})
	ended := make(chan error, 1)
	var n atomic.Int32
	go func() {
		cfg := work.Config{Step: forge.StepAnalyze, Replica: "a", Parallel: 2, Drain: drain}
		ended <- b.Commands.Consume(ctx, cfg, func(ctx context.Context, _ *work.Job) error {
			n.Add(1)
			close(started)
			<-finish
			return ctx.Err()
		})
	}()
	dispatch(t, b, command(1))
	wait.For(t, started)
	close(drain)
	others := make(chan int, 10)
	consume(t, b, work.Config{Replica: "b"}, func(_ context.Context, j *work.Job) error {
		others <- j.Command.Attempt.Number
		return nil
	})
	close(finish)
	if err := wait.For(t, ended); err != nil || n.Load() != 1 {
		t.Fatalf("drained after %d commands, %v", n.Load(), err)
	}
	dispatch(t, b, command(2))
	if got := wait.For(t, others); got != 2 {
		t.Errorf("the other replica took %d", got)
	}
}

// TestGarbageCommand checks that a machine is told when its command cannot be
// carried out: it would wait for ever.
func TestGarbageCommand(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	seen := collect(t, b)
	nc := raw(t, s)
	waits := record(key, 0)
	waits.Summary.Open = []forge.Attempt{{Step: forge.StepAnalyze, Number: 7, Claim: 1}, {Step: forge.StepAnalyze, Number: 3, Claim: 1}}
	if _, err := b.Journal.Append(ctx, key, chain.Head{}, waits); err != nil {
		t.Fatal(err)
	}
	put(t, nc, "forge.command.analyze.any.shop.fix-login.-.7.1", []byte("\xff\xff"))
	put(t, nc, "forge.command.analyze.any.shop", []byte("\xff\xff"))
	jobs := make(chan int, 10)
	consume(t, b, work.Config{}, func(_ context.Context, j *work.Job) error {
		jobs <- j.Command.Attempt.Number
		if j.Command.Attempt.Number == 2 {
			return bus.Terminate("no such thing")
		}
		return nil
	})
	ev := wait.For(t, seen)
	if r := forge.As[*forge.Result](ev.Message); r == nil || r.Failure() == nil || r.Attempt != (forge.Attempt{Step: forge.StepAnalyze, Number: 7, Claim: 1}) {
		t.Errorf("the machine is told %+v", ev)
	}
	wrong := command(3)
	wrong.Input = &forge.ReviewInput{}
	dispatch(t, b, wrong)
	ev = wait.For(t, seen)
	if r := forge.As[*forge.Result](ev.Message); r.Failure() == nil || r.Attempt.Number != 3 {
		t.Errorf("of a command with another step's input, the machine is told %+v", ev)
	}
	dispatch(t, b, command(1), command(2))
	wait.For(t, jobs)
	wait.For(t, jobs)
	ev = wait.For(t, seen)
	if r := forge.As[*forge.Result](ev.Message); r.Failure() == nil || r.Attempt.Number != 2 {
		t.Errorf("the machine is told %+v", ev)
	}
	deadLetters(ctx, t, b, 4)
}
