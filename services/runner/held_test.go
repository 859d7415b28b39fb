package runner_test

import (
	"context"
	"log/slog"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// TestHeldResultComesFirst stops the server while a worker is at work. The commands
// are gone with the server's memory and are dispatched again when it is back, but not
// before the worker has told what it finished meanwhile: nobody does the work again.
func TestHeldResultComesFirst(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }})
	})
	<-ready
	began, finish, ended := make(chan forge.ReplicaID, 10), make(chan struct{}), make(chan struct{}, 10)
	for _, replica := range []forge.ReplicaID{"w1", "w2"} {
		w := &service.Worker{Bus: s.Connect(t), Replica: replica, Log: slog.New(slog.DiscardHandler), Parallel: 1}
		for _, step := range forge.Steps() {
			w.Handlers = append(w.Handlers, service.Handler{Step: step, Do: func(_ context.Context, cmd forge.Command, _ service.Progress) forge.Result {
				if step == forge.StepAnalyze && !cmd.Analyze().PolicyOnly {
					began <- replica
					<-finish
					ended <- struct{}{}
				}
				return succeed(cmd)
			}})
		}
		group.Go(func() error { return w.Run(ctx) })
	}
	if ruling, err := b.Submissions.Ask(t.Context(), submission("one")); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	<-began
	s.Stop()
	wait.Until(t, "the server is gone", func() bool { return b.Ping(t.Context()) != nil })
	close(finish)
	<-ended
	s.Start(t)
	await(t, b, forge.StatusDone, "one")
	if n := len(ended); n > 0 {
		t.Errorf("the analysis was done %d more times", n)
	}
}
