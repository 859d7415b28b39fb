package service_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

func outbox(t *testing.T, dir string) *service.Outbox {
	t.Helper()
	o, err := service.OpenOutbox(dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// files lists an outbox.
func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// becomesEmpty waits until nothing is in an outbox.
func becomesEmpty(t *testing.T, dir string) {
	t.Helper()
	wait.Until(t, "nothing is left in "+dir, func() bool { return len(files(t, dir)) == 0 })
}

// TestKilledWithAResult kills a worker whose result no runner has journaled. Its next
// life publishes it, and does not do the work again.
func TestKilledWithAResult(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	r := absentRunner(t, s.Connect(t))
	state := t.TempDir()
	c := startChildThat(t, "finish", state, "--server", s.URL(), "--replica=w1")
	c.becomes("ok")
	r.start(analyze(1))
	c.waitFor("a result waits for a runner; trying again")
	c.signal(syscall.SIGKILL)
	c.exitCode()

	c = startChildThat(t, "go on", state, "--server", s.URL(), "--replica=w1")
	c.waitFor("publish a result that a former process left")
	r.decide()
	if got := r.result(); got.Attempt != analyze(1).Attempt || forge.As[*forge.Analysis](got.Output) == nil || got.Replica != "w1" {
		t.Errorf("got %+v", got)
	}
	becomesEmpty(t, filepath.Join(state, "outbox", "analyzer"))
}

// TestDrainWithAResult: a drain does not wait for a runner that is away, and the
// result is not lost.
func TestDrainWithAResult(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	b := bustest.Start(t)
	r := absentRunner(t, b)
	dir := t.TempDir()
	ends := make(chan struct{}, 1)
	w := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result {
		ends <- struct{}{}
		return found()
	})
	w.Outbox, w.Grace = outbox(t, dir), time.Hour
	drain, ended := drained(t, w)
	r.start(analyze(1))
	wait.For(t, ends)
	drain()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	if len(files(t, dir)) != 1 {
		t.Fatalf("in the outbox: %v", files(t, dir))
	}

	next := worker(t, b, func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
		if cmd.Attempt.Number == 1 {
			t.Error("the work is done again")
		}
		return found()
	})
	next.Outbox = outbox(t, dir)
	workerRun(t, next)
	r.decide()
	if got := r.result(); got.Attempt.Number != 1 || forge.As[*forge.Analysis](got.Output) == nil {
		t.Errorf("got %+v", got)
	}
	r.none()
}

// TestResultsWaitWithoutAPermit: while results wait for a runner, other agents run.
func TestResultsWaitWithoutAPermit(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := absentRunner(t, b)
	began := make(chan int, 10)
	w := worker(t, b, func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
		began <- cmd.Attempt.Number
		return found()
	})
	w.Handlers[0].Agent, w.Permits, w.Parallel = true, service.NewPermits(1), 1
	w.Outbox = outbox(t, t.TempDir())
	workerRun(t, w)
	r.start(analyze(1), analyze(2), analyze(3))
	for range 3 {
		wait.For(t, began)
	}
	r.decide()
	numbers := 0
	for range 3 {
		numbers += r.result().Attempt.Number
	}
	if numbers != 6 {
		t.Errorf("results of %d", numbers)
	}
}

// TestOutboxThatCannotBeRead: what was cut off by a kill is no result, and not in the
// way of others.
func TestOutboxThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"empty": "", "free": "\x00\x00\x00\x00\x00\x00\x00\x00rest of what was there",
		"cut": "\x00\x00\x10\x00\x01\x02\x03\x04text", "garbage": "\x00\x00\x00\x04\x8c\x73\x6c\x25\xff\xff\xff\xff",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRunner(t, b)
	w := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
	w.Outbox = outbox(t, dir)
	drain, ended := drained(t, w)
	r.start(analyze(1))
	if got := r.result(); forge.As[*forge.Analysis](got.Output) == nil {
		t.Errorf("got %+v", got)
	}
	drain()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
	becomesEmpty(t, dir)
}
