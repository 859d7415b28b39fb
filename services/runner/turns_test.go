package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// run runs a runner on a connection of its own, until the test ends, or kill is called.
func run(t *testing.T, s *bustest.Server, limits quota.Limits) (b *bus.Bus, kill func()) {
	t.Helper()
	b = s.Connect(t)
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	ready := make(chan struct{})
	group.Go(func() error {
		return runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Quotas: limits, Ready: func() { close(ready) }})
	})
	wait.For(t, ready)
	stop := sync.OnceFunc(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return b, func() {
		b.Close() // whatever it is about to say is not heard any more
		stop()
	}
}

// floor is a worker whose commands end when the test says so.
type floor struct {
	started chan forge.Command
	finish  chan struct{}
}

// work has a replica with slots take the commands of steps, until the test ends.
func (f *floor) work(t *testing.T, b *bus.Bus, slots int, steps ...forge.Step) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	for _, step := range steps {
		group.Go(func() error {
			return b.Commands.Consume(ctx, work.Config{Step: step, Replica: "floor", Parallel: slots}, func(ctx context.Context, j *work.Job) error {
				if wanted, err := j.Wanted(ctx); !wanted || err != nil {
					return err
				}
				select {
				case f.started <- j.Command:
				case <-ctx.Done():
					return ctx.Err()
				}
				select {
				case <-f.finish:
				case <-ctx.Done():
					return ctx.Err()
				}
				return b.Results.Publish(ctx, succeed(j.Command))
			})
		})
	}
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func newFloor() *floor { return &floor{make(chan forge.Command), make(chan struct{})} }

// submitTo asks for n intents of a project.
func submitTo(t *testing.T, b *bus.Bus, p forge.ProjectID, n int) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(20)
	for i := range n {
		group.Go(func() error {
			ev := submission(forge.IntentID(fmt.Sprintf("%s-%03d", p, i)))
			ev.To.Project = p
			forge.As[*forge.Submit](ev.Message).Intent.Project = p
			ev.ID += "/" + string(p)
			_, err := b.Submissions.Ask(t.Context(), ev)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// queued returns how many commands of a step there are, wherever they wait, and
// how many are being worked on.
func queued(t *testing.T, b *bus.Bus, step forge.Step) (n int) {
	t.Helper()
	list, err := b.Commands.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range list {
		if q.Step == step {
			n += q.Waiting + q.Active
		}
	}
	return n
}

func awaitQueued(t *testing.T, b *bus.Bus, step forge.Step, n int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d commands are there", n), func() bool { return queued(t, b, step) == n })
}

// TestOneBehindMany: the single intent of a project begins after no more others
// than there are places at the workers and projects, not after all that were
// there before. All that waits is counted.
func TestOneBehindMany(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 4} {
		s := bustest.StartServer(t)
		b, _ := run(t, s, quota.Limits{})
		f := newFloor()
		f.work(t, s.Connect(t), slots, forge.StepAnalyze)
		submitTo(t, b, "web", 200)
		for range slots {
			wait.For(t, f.started)
		}
		awaitQueued(t, b, forge.StepAnalyze, 200)
		submitTo(t, b, "shop", 1)
		awaitQueued(t, b, forge.StepAnalyze, 201)
		before := -1
		for p := forge.ProjectID(""); p != "shop"; before++ {
			f.finish <- struct{}{}
			p = wait.For(t, f.started).To.Project
		}
		if t.Logf("with %d places %d are begun before it", slots, before); before > slots+2 {
			t.Errorf("with %d places %d are begun before it, want at most %d", slots, before, slots+2)
		}
	}
}

// TestEqualShares: three projects that all have more to do than there is room for get the same.
func TestEqualShares(t *testing.T) {
	t.Parallel()
	const slots, starts = 4, 90
	s := bustest.StartServer(t)
	b, _ := run(t, s, quota.Limits{})
	f := newFloor()
	f.work(t, s.Connect(t), slots, forge.StepAnalyze)
	projects := []forge.ProjectID{"web", "shop", "site"}
	for i, p := range projects {
		submitTo(t, b, p, 60)
		if i == 0 {
			for range slots {
				wait.For(t, f.started)
			}
		}
		awaitQueued(t, b, forge.StepAnalyze, 60*(i+1))
	}
	got := map[forge.ProjectID]int{}
	order := map[forge.ProjectID][]forge.IntentID{}
	for range starts {
		f.finish <- struct{}{}
		c := wait.For(t, f.started)
		got[c.To.Project]++
		order[c.To.Project] = append(order[c.To.Project], c.To.Intent)
	}
	for _, p := range projects {
		if n := got[p]; n < starts/3-slots || n > starts/3+slots {
			t.Errorf("project %s had %d of %d, want a third: %v", p, n, starts, got)
		}
	}
	t.Log(slices.Sorted(maps.Keys(order)), got)
}
