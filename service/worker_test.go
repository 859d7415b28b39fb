package service_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

var key = forge.Key{Project: "shop", Intent: "fix-login"}

// runner stands where the runner does: it journals which attempts are wanted,
// dispatches their commands, and gets the results.
type runner struct {
	t       *testing.T
	bus     *bus.Bus
	results chan forge.Result
}

func newRunner(t *testing.T, b *bus.Bus) *runner {
	t.Helper()
	r := absentRunner(t, b)
	r.decide()
	return r
}

// absentRunner takes no results until it is told to decide.
func absentRunner(t *testing.T, b *bus.Bus) *runner {
	t.Helper()
	return &runner{t: t, bus: b, results: make(chan forge.Result, 100)}
}

func (r *runner) decide() {
	r.t.Helper()
	background(r.t, func(ctx context.Context) {
		r.bus.Events.Consume(ctx, decide.Config{}, func(_ context.Context, d *decide.Delivery) error {
			r.results <- *forge.As[*forge.Result](d.Event.Message)
			return nil
		})
	})
}

// background runs do until the test ends, and waits for its end.
func background(t *testing.T, do func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func analyze(n int) forge.Command {
	return forge.Command{To: key, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: n, Claim: 1}, Input: &forge.AnalyzeInput{}}
}

// want journals that just these commands' attempts are open.
func (r *runner) want(open ...forge.Command) {
	r.t.Helper()
	ctx := wait.Context(r.t)
	seq, err := r.bus.Journal.Last(ctx, key)
	if err != nil {
		r.t.Fatal(err)
	}
	rec := forge.Record{Summary: forge.Summary{Key: key, Status: forge.StatusExecuting}}
	for _, c := range open {
		rec.Summary.Open = append(rec.Summary.Open, c.Attempt)
	}
	if _, err := r.bus.Journal.Append(ctx, key, seq, rec); err != nil {
		r.t.Fatal(err)
	}
}

func (r *runner) dispatch(eff forge.Effects) {
	r.t.Helper()
	if err := r.bus.Effects.Dispatch(wait.Context(r.t), key, eff); err != nil {
		r.t.Fatal(err)
	}
}

// start opens these commands' attempts and dispatches them.
func (r *runner) start(commands ...forge.Command) {
	r.t.Helper()
	r.want(commands...)
	r.dispatch(forge.Effects{Commands: commands})
}

func (r *runner) result() forge.Result {
	r.t.Helper()
	return wait.For(r.t, r.results)
}

// none fails if there is a result that nobody asked for. It asks for one more
// attempt, which must be the next to report.
func (r *runner) none() {
	r.t.Helper()
	marker := analyze(99)
	r.start(marker)
	if got := r.result(); got.Attempt != marker.Attempt {
		r.t.Errorf("unexpected result of %s: %+v", got.Attempt, got)
	}
}

type do = func(context.Context, forge.Command, service.Progress) forge.Result

func worker(t *testing.T, b *bus.Bus, work do) *service.Worker {
	t.Helper()
	return &service.Worker{
		Bus: b, Replica: "w1", Parallel: 2, Grace: time.Minute,
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		Handlers: []service.Handler{{Step: forge.StepAnalyze, Do: work}},
	}
}

// run runs a worker until the test ends.
func workerRun(t *testing.T, w *service.Worker) {
	t.Helper()
	background(t, func(ctx context.Context) {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
}

func found() forge.Result { return forge.Result{Output: &forge.Analysis{NothingToDo: "all is well"}} }

func TestResultIsFilledIn(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	workerRun(t, worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result {
		res := found()
		res.To, res.Replica, res.Agent = forge.Key{Project: "forged"}, "forged", "recipe"
		return res
	}))
	r.start(analyze(1))
	got := r.result()
	if got.To != key || got.Attempt != analyze(1).Attempt || got.Replica != "w1" || got.Agent != "recipe" ||
		got.StartedAt.IsZero() || got.Duration <= 0 || forge.As[*forge.Analysis](got.Output) == nil || got.Failure() != nil || got.IsStart() {
		t.Errorf("got %+v", got)
	}
	r.none()
}

func TestOwnCommandIsClaimedFirst(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	workerRun(t, worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result { return found() }))
	cmd := analyze(1)
	cmd.Replica = "w1"
	r.start(cmd)
	first, second := r.result(), r.result()
	if second.IsStart() {
		first, second = second, first // the runner takes both at the same time
	}
	if !first.IsStart() || first.Replica != "w1" || second.IsStart() || forge.As[*forge.Analysis](second.Output) == nil {
		t.Errorf("got %+v, then %+v", first, second)
	}
}

func TestUnwantedCommandIsNotStarted(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	r.want()
	r.dispatch(forge.Effects{Commands: []forge.Command{analyze(1)}})
	began := make(chan int, 10)
	w := worker(t, b, func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
		began <- cmd.Attempt.Number
		return found()
	})
	w.Parallel = 1 // in order
	workerRun(t, w)
	r.none()
	if n := wait.For(t, began); n != 99 {
		t.Errorf("attempt %d was started", n)
	}
}

// TestRegardlessReportsFacts: that a commit merged is true, whoever waits for it.
func TestRegardlessReportsFacts(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	r.want()
	r.dispatch(forge.Effects{Commands: []forge.Command{analyze(1), analyze(2)}})
	w := worker(t, b, func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
		if cmd.Attempt.Number == 1 {
			return forge.Result{Output: &forge.Failure{Reason: forge.FailKilled, Message: "no fact"}}
		}
		return found()
	})
	w.Handlers[0].Regardless, w.Parallel = true, 1 // in order
	workerRun(t, w)
	if got := r.result(); got.Attempt.Number != 2 || forge.As[*forge.Analysis](got.Output) == nil {
		t.Errorf("got %+v", got)
	}
	r.none()
}

// blocked is a handler that runs until it is cancelled or released.
type blocked struct {
	began    chan int
	causes   chan error
	released chan struct{}
	usage    forge.Usage // when it is cancelled
}

func newBlocked() *blocked {
	return &blocked{began: make(chan int, 10), causes: make(chan error, 10), released: make(chan struct{})}
}

func (h *blocked) do(ctx context.Context, cmd forge.Command, _ service.Progress) forge.Result {
	if cmd.Attempt.Number == 99 {
		return found()
	}
	h.began <- cmd.Attempt.Number
	select {
	case <-ctx.Done():
		h.causes <- context.Cause(ctx)
		return forge.Result{Usage: h.usage, Output: &forge.Failure{Reason: forge.FailKilled, Message: "cancelled"}}
	case <-h.released:
		return found()
	}
}

func TestControlCancelsAtOnce(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	w := worker(t, b, h.do)
	w.Recheck = time.Hour
	workerRun(t, w)
	r.start(analyze(1))
	wait.For(t, h.began)
	r.want()
	r.dispatch(forge.Effects{Cancels: []forge.Attempt{analyze(1).Attempt}})
	if cause := wait.For(t, h.causes); !errors.Is(cause, service.ErrNotWanted) {
		t.Errorf("cause %v", cause)
	}
	r.none()
}

func TestWrongControlChangesNothing(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	w := worker(t, b, h.do)
	seen := make(chan live.Control, 10)
	w.OnControl = func(c live.Control) { seen <- c }
	workerRun(t, w)
	r.start(analyze(1))
	wait.For(t, h.began)
	r.dispatch(forge.Effects{Cancels: []forge.Attempt{analyze(1).Attempt}}) // but it is still open
	if c := wait.For(t, seen); len(c.Cancels) != 1 {
		t.Errorf("told %+v", c)
	}
	close(h.released)
	if got := r.result(); got.Failure() != nil {
		t.Errorf("got %+v", got.Failure())
	}
}

func TestRecheckCancels(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	w := worker(t, b, h.do)
	w.Recheck = 10 * time.Millisecond
	workerRun(t, w)
	r.start(analyze(1))
	wait.For(t, h.began)
	r.want()
	if cause := wait.For(t, h.causes); !errors.Is(cause, service.ErrNotWanted) {
		t.Errorf("cause %v", cause)
	}
	r.none()
}

// Whatever a handler makes of it, an attempt that we stopped did not crash.
func TestACancelledAttemptDidNotCrash(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	began := make(chan int, 1)
	workerRun(t, worker(t, b, func(ctx context.Context, cmd forge.Command, _ service.Progress) forge.Result {
		began <- cmd.Attempt.Number
		<-ctx.Done()
		return forge.Result{
			Usage:  forge.Usage{CostUSD: 0.5}, // so that it is reported
			Output: &forge.Failure{Reason: forge.FailCrashed, Message: "claude " + context.Cause(ctx).Error()},
		}
	}))
	r.start(analyze(1))
	wait.For(t, began)
	r.want()
	r.dispatch(forge.Effects{Cancels: []forge.Attempt{analyze(1).Attempt}})
	got := r.result()
	if f := got.Failure(); f == nil || f.Reason != forge.FailKilled || f.Message != "stopped: the attempt is not wanted any more" {
		t.Errorf("got %+v", got.Failure())
	}
}

func TestCostsOfACancelledAttemptAreReported(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	h.usage = forge.Usage{Calls: 1, OutputTokens: 7, CostUSD: 0.5}
	w := worker(t, b, h.do)
	w.Recheck = 10 * time.Millisecond
	workerRun(t, w)
	r.start(analyze(1))
	wait.For(t, h.began)
	r.want()
	if got := r.result(); got.Usage != h.usage || got.Failure() == nil || got.Failure().Reason != forge.FailKilled {
		t.Errorf("got %+v, failure %+v", got.Usage, got.Failure())
	}
}

func TestBadHandlersBecomeFailures(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	workerRun(t, worker(t, b, func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
		switch cmd.Attempt.Number {
		case 1:
			panic("of no use")
		case 2:
			return forge.Result{Output: &forge.Review{}} // of another step
		}
		return forge.Result{Output: &forge.Analysis{NothingToDo: strings.Repeat("x", 9<<20)}}
	}))
	for n, want := range []forge.Failure{
		{Reason: forge.FailCrashed, Message: "of no use"},
		{Reason: forge.FailCrashed, Message: "reported nothing"},
		{Reason: forge.FailOutputLimit, Message: "larger than"},
	} {
		r.start(analyze(n + 1))
		got := r.result()
		if f := got.Failure(); f == nil || f.Reason != want.Reason || !strings.Contains(f.Message, want.Message) {
			t.Errorf("attempt %d: got %+v, want %+v", n+1, f, want)
		}
		if forge.As[*forge.Analysis](got.Output) != nil || forge.As[*forge.Review](got.Output) != nil {
			t.Errorf("attempt %d: a failure with a payload", n+1)
		}
	}
}

func TestWorkerIsChecked(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	for name, change := range map[string]func(*service.Worker){
		"missing":      func(w *service.Worker) { w.Handlers = nil },
		"at least 1":   func(w *service.Worker) { w.Parallel = 0 },
		"negative":     func(w *service.Worker) { w.Grace = -1 },
		"replica id":   func(w *service.Worker) { w.Replica = "*" },
		"unknown step": func(w *service.Worker) { w.Handlers[0].Step = "dance" },
	} {
		w := worker(t, b, nil)
		change(w)
		if err := w.Run(wait.Context(t)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
}
