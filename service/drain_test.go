package service_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// drained runs a worker and returns how to begin its drain, and its end.
func drained(t *testing.T, w *service.Worker) (drain func(), ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	errs, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		errs <- w.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return cancel, errs
}

func TestDrainLetsRunningWorkFinish(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	drain, ended := drained(t, worker(t, b, h.do))
	r.start(analyze(1))
	wait.For(t, h.began)
	drain()
	r.start(analyze(2)) // too late for this one
	close(h.released)
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	if got := r.result(); got.Attempt.Number != 1 || got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
	next := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
	next.Replica = "w2"
	workerRun(t, next)
	if got := r.result(); got.Attempt.Number != 2 || got.Replica != "w2" {
		t.Errorf("got %+v", got)
	}
}

// TestDrainTellsCosts: what an agent cost before its service ended counts, before
// anybody goes on.
func TestDrainTellsCosts(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	h.usage = forge.Usage{Calls: 1, OutputTokens: 7, CostUSD: 0.5}
	w := worker(t, b, h.do)
	w.Grace = time.Millisecond
	drain, ended := drained(t, w)
	r.start(analyze(1))
	wait.For(t, h.began)
	drain()
	if got := r.result(); got.Usage != h.usage || got.Failure() == nil || got.Failure().Reason != forge.FailInterrupted {
		t.Errorf("got %+v, failure %+v", got.Usage, got.Failure())
	}
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
}

func TestDrainHandsUnfinishedWorkBack(t *testing.T) {
	t.Parallel()
	wait.Until(t, "another replica gets it long before the server gives it up for lost", func() bool { return handedBack(t) < 10*time.Second })
}

// handedBack drains a replica at work, and returns after how long another one has done it.
func handedBack(t *testing.T) time.Duration {
	t.Helper()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	w := worker(t, b, h.do)
	w.Grace = time.Millisecond
	drain, ended := drained(t, w)
	r.start(analyze(1))
	wait.For(t, h.began)
	drain()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	if cause := wait.For(t, h.causes); !errors.Is(cause, service.ErrDraining) {
		t.Errorf("cause %v", cause)
	}
	began := time.Now()
	next := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
	next.Replica = "w2"
	workerRun(t, next)
	if got := r.result(); got.Attempt != analyze(1).Attempt || got.Replica != "w2" || got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
	return time.Since(began)
}

// TestDrainKeepsWhatIsDone: work that ended well while it was being cancelled is
// reported, not done again.
func TestDrainKeepsWhatIsDone(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	began := make(chan int, 1)
	w := worker(t, b, func(ctx context.Context, _ forge.Command, _ service.Progress) forge.Result {
		began <- 1
		<-ctx.Done()
		return found()
	})
	w.Grace = time.Millisecond
	drain, ended := drained(t, w)
	r.start(analyze(1))
	wait.For(t, began)
	drain()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	if got := r.result(); forge.As[*forge.Analysis](got.Output) == nil || got.Replica != "w1" {
		t.Errorf("got %+v", got)
	}
}

func TestDrainHandsWaitingWorkBack(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	h := newBlocked()
	w := worker(t, b, h.do)
	w.Handlers[0].Agent, w.Permits = true, service.NewPermits(1)
	drain, ended := drained(t, w)
	r.start(analyze(1), analyze(2)) // the second one waits for the permit
	first := wait.For(t, h.began)
	drain()
	next := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
	next.Replica = "w2"
	workerRun(t, next)
	if got := r.result(); got.Attempt.Number != 3-first || got.Replica != "w2" {
		t.Errorf("got %+v", got)
	}
	close(h.released) // only now, the first one ends
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	if got := r.result(); got.Attempt.Number != first || got.Replica != "w1" {
		t.Errorf("got %+v", got)
	}
}

func TestPermitsAreSharedAmongSteps(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	var running, most atomic.Int32
	meet := make(chan struct{}) // each waits for another one
	work := func(payload func() forge.Result) do {
		return func(context.Context, forge.Command, service.Progress) forge.Result {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			select {
			case meet <- struct{}{}:
			case <-meet:
			}
			return payload()
		}
	}
	w := worker(t, b, nil)
	w.Parallel, w.Permits = 8, service.NewPermits(2)
	w.Handlers = []service.Handler{
		{Step: forge.StepAnalyze, Agent: true, Do: work(found)},
		{Step: forge.StepReview, Agent: true, Do: work(func() forge.Result { return forge.Result{Output: &forge.Review{Verdict: forge.VerdictApproved}} })},
	}
	workerRun(t, w)
	var all []forge.Command
	for n := 1; n <= 20; n++ {
		review := analyze(n)
		review.Attempt.Step, review.Attempt.Task = forge.StepReview, forge.NewTaskID(key.Intent, n)
		review.Input = &forge.ReviewInput{}
		all = append(all, analyze(n), review)
	}
	r.start(all...)
	for range all {
		if got := r.result(); got.Failure() != nil {
			t.Errorf("got %+v", got.Failure())
		}
	}
	if most.Load() != 2 {
		t.Errorf("%d agents at the same time, want 2", most.Load())
	}
}

// TestServerRestartDuringAnAttempt: its command comes a second time, because
// commands are not kept across restarts but dispatched again.
func TestServerRestartDuringAnAttempt(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	r := newRunner(t, b)
	h := newBlocked()
	workerRun(t, worker(t, b, h.do))
	r.start(analyze(1))
	wait.For(t, h.began)
	s.Stop()
	for b.Ping(wait.Context(t)) == nil {
		runtime.Gosched()
	}
	close(h.released) // it ends while nobody can be told
	s.Start(t)
	if err := b.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	if got := r.result(); got.Failure() != nil || got.Attempt.Number != 1 {
		t.Errorf("got %+v", got)
	}
	r.none()
}

func TestSameCommandTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	r := newRunner(t, b)
	h := newBlocked()
	workerRun(t, worker(t, b, h.do))
	r.start(analyze(1))
	wait.For(t, h.began)
	s.Restart(t)
	if err := b.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	r.start(analyze(1), analyze(2))
	if n := wait.For(t, h.began); n != 2 {
		t.Errorf("attempt %d was started", n)
	}
	close(h.released)
	got := fmt.Sprint(r.result().Attempt.Number + r.result().Attempt.Number)
	if got != "3" {
		t.Errorf("results of %s", got)
	}
	select {
	case n := <-h.began:
		t.Errorf("attempt %d was started again", n)
	default:
	}
}

func TestProgressIsAddressedAndBounded(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	seen := make(chan forge.Progress, 1000)
	if err := b.Live.FollowProgress(wait.Context(t), "", func(p forge.Progress) { seen <- p }); err != nil {
		t.Fatal(err)
	}
	workerRun(t, worker(t, b, func(_ context.Context, _ forge.Command, progress service.Progress) forge.Result {
		for range 500 {
			progress(forge.Progress{Kind: forge.ProgressOutput, Text: string(make([]byte, 5000))})
		}
		return found()
	}))
	r.start(analyze(1))
	n := 0
	for p := range seen {
		n++
		if p.To != key || p.Attempt != analyze(1).Attempt || p.Replica != "w1" || p.At.IsZero() || len(p.Text) > 4<<10 {
			t.Fatalf("got %+v", p)
		}
		if (n == 1) != (p.Kind == forge.ProgressStarted) {
			t.Errorf("message %d is %s", n, p.Kind)
		}
		if p.Kind == forge.ProgressEnded {
			break
		}
	}
	if n < 10 || n > 100 {
		t.Errorf("%d messages of 502", n)
	}
}
