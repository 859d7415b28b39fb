package bus_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// publish hands a result over in the background, and tells when that is done.
func publish(ctx context.Context, b *bus.Bus, r forge.Result) <-chan error {
	done := make(chan error, 1)
	go func() { done <- b.Results.Publish(ctx, r) }()
	return done
}

// TestResultIsPublishedWhenItIsDecided checks that a worker is not told before the
// decision, and is told after it, however often that needs to be tried.
func TestResultIsPublishedWhenItIsDecided(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	deciding, decided := make(chan struct{}), make(chan struct{})
	var tries atomic.Int32
	serve(t, b, func(_ context.Context, d *decide.Delivery) error {
		if n := tries.Add(1); d.Attempt != int(n) {
			t.Errorf("try %d says that it is %d", n, d.Attempt)
		}
		if tries.Load() < 3 {
			return bus.Retry(time.Millisecond, errors.New("no journal"))
		}
		close(deciding)
		<-decided
		return nil
	})
	done := publish(ctx, b, result(1, "a"))
	wait.For(t, deciding)
	select {
	case err := <-done:
		t.Fatalf("published before it is decided: %v", err)
	default:
	}
	close(decided)
	if err := wait.For(t, done); err != nil {
		t.Error(err)
	}
}

// TestRunnerDiesWithAResult checks that a result whose runner does not answer goes to
// another one, which is told that it is not the first.
func TestRunnerDiesWithAResult(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	b.AnswerTimeout(50 * time.Millisecond)
	dying, die := context.WithCancel(ctx)
	took, never, dead := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
	first := s.Connect(t)
	go func() {
		defer close(dead)
		first.Events.Consume(dying, decide.Config{Timeout: time.Minute}, func(context.Context, *decide.Delivery) error {
			took <- struct{}{}
			<-never
			return errors.New("it is dead")
		})
	}()
	defer func() { close(never); <-dead }()
	done := publish(ctx, b, result(1, "a"))
	wait.For(t, took)
	die() // it takes no more, and says nothing of what it took
	attempts := make(chan int, 10)
	serve(t, s.Connect(t), func(_ context.Context, d *decide.Delivery) error {
		attempts <- d.Attempt
		return nil
	})
	if err := wait.For(t, done); err != nil {
		t.Error(err)
	}
	if n := wait.For(t, attempts); n < 2 {
		t.Errorf("the other runner is told that this is delivery %d", n)
	}
}

// TestResultOutlivesTheServer checks that a result that was on its way when the server
// went is handed over as soon as it is back.
func TestResultOutlivesTheServer(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	first := make(chan struct{})
	var once atomic.Bool
	release := make(chan struct{})
	defer close(release)
	serveWith(t, b, decide.Config{Timeout: time.Minute}, func(context.Context, *decide.Delivery) error {
		if once.CompareAndSwap(false, true) {
			close(first)
			<-release // its answer is never heard
		}
		return nil
	})
	worker := s.Connect(t)
	worker.AnswerTimeout(time.Hour) // only the new connection makes it ask again
	done := publish(ctx, worker, result(1, "a"))
	wait.For(t, first)
	s.Restart(t)
	if err := wait.For(t, done); err != nil {
		t.Error(err)
	}
}

// TestRefusedResult checks that a worker is told when nobody will ever decide on its
// result, and that this is among the dead letters.
func TestRefusedResult(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	b := bustest.Start(t)
	serve(t, b, func(context.Context, *decide.Delivery) error { return bus.Terminate("the journal is damaged") })
	for range 2 {
		err := b.Results.Publish(ctx, result(1, "a"))
		if refused, ok := errors.AsType[*work.RefusedError](err); !ok || refused.Reason != "the journal is damaged" {
			t.Errorf("got %v", err)
		}
	}
	dead := deadLetters(ctx, t, b, 1)
	if d := dead[0]; d.Reason != "the journal is damaged" || !strings.HasPrefix(d.Subject, "forge.result.analyze.") || d.Stream != "" {
		t.Errorf("dead letter %+v", d)
	}
}

func TestResultWithoutARunner(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	ctx := wait.Briefly(t, 50*time.Millisecond)
	if err := b.Results.Publish(ctx, result(1, "a")); err == nil {
		t.Error("nobody decided on it")
	}
}
