package runner_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/turns"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
)

// tally counts the calls that run now, and how often each was begun.
type tally struct {
	mu      sync.Mutex
	now     map[forge.ProjectID]int
	most    map[forge.ProjectID]int
	begun   map[string]int
	ended   int
	orphans int // begun by a worker that was killed
}

func newTally() *tally {
	return &tally{now: map[forge.ProjectID]int{}, most: map[forge.ProjectID]int{}, begun: map[string]int{}}
}

func (l *tally) add(c *forge.Command, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := c.To.Project
	l.now[p] += n
	l.most[p] = max(l.most[p], l.now[p])
	if n > 0 {
		l.begun[c.ID()]++
	} else {
		l.ended++
	}
}

// crew is a worker for all steps whose calls take a moment, until the test
// ends, or kill is called, after which nothing that it does is heard.
func (l *tally) crew(t *testing.T, s *bustest.Server, name forge.ReplicaID) (kill func()) {
	t.Helper()
	b := s.Connect(t)
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	for i, step := range forge.Steps() {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		group.Go(func() error {
			return b.Commands.Consume(ctx, work.Config{Step: step, Replica: name, Parallel: 8}, func(ctx context.Context, j *work.Job) error {
				if wanted, err := j.Wanted(ctx); !wanted || err != nil {
					return err
				}
				if turns.Takes(step) {
					l.add(&j.Command, 1)
				}
				mu.Lock()
				moment := wait.Moment(rng, time.Millisecond, 10*time.Millisecond)
				mu.Unlock()
				select {
				case <-moment:
				case <-ctx.Done():
				}
				if turns.Takes(step) {
					l.add(&j.Command, -1) // from here on it waits for a runner
				}
				if ctx.Err() != nil {
					l.mu.Lock()
					l.orphans++
					l.mu.Unlock()
					return ctx.Err()
				}
				r := succeed(j.Command)
				r.Replica = name
				err := b.Results.Publish(ctx, r)
				if err != nil {
					l.mu.Lock()
					l.orphans++
					l.mu.Unlock()
				}
				return err
			})
		})
	}
	stop := sync.OnceFunc(func() {
		cancel()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return func() {
		b.Close()
		stop()
	}
}

// TestBoundOfCalls: however many runners there are and whichever of them and of the
// workers are killed, no project has more calls at the workers than it may, all intents
// end, and no call is made twice but those that were under way where a worker was killed.
func TestBoundOfCalls(t *testing.T) {
	t.Parallel()
	const bound, intents = 3, 20
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 2))
		s := bustest.StartServer(t)
		limits := quota.Limits{Calls: bound}
		var kills []func()
		for range 2 {
			_, kill := run(t, s, limits)
			kills = append(kills, kill)
		}
		l := newTally()
		killCrew := l.crew(t, s, "one")
		l.crew(t, s, "two")
		b := s.Connect(t)
		projects := []forge.ProjectID{project, "shop"}
		ended := make(chan struct{})
		killing, stop := context.WithCancel(context.Background())
		go func() { // runners die at any moment, and new ones take their place
			defer close(ended)
			for n := range 4 {
				select {
				case <-wait.Moment(rng, 20*time.Millisecond, 200*time.Millisecond):
				case <-killing.Done():
					return
				}
				i := rng.IntN(len(kills))
				kills[i]()
				_, kills[i] = run(t, s, limits)
				if n == 1 {
					killCrew()
				}
			}
		}()
		var group errgroup.Group
		for _, p := range projects {
			group.Go(func() error { submitTo(t, b, p, intents); return nil })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		wait.For(t, ended)
		stop()
		wait.Moving(t, "all intents are done", func() bool {
			done := 0
			for _, p := range projects {
				list, err := b.Journal.Summaries(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				for i := range list {
					if list[i].Status == forge.StatusDone {
						done++
					}
				}
			}
			return done == len(projects)*intents
		}, func() int { l.mu.Lock(); defer l.mu.Unlock(); return l.ended })
		l.mu.Lock()
		again := 0
		for _, n := range l.begun {
			again += n - 1
		}
		t.Logf("seed %d: at most %v at once, %d begun again, %d where a worker was killed", seed, l.most, again, l.orphans)
		for _, p := range projects {
			if l.most[p] > bound || l.most[p] == 0 {
				t.Errorf("seed %d: project %s had %d calls at once, want at most %d", seed, p, l.most[p], bound)
			}
		}
		if again > l.orphans {
			t.Errorf("seed %d: %d calls were made again, and %d lost with a worker", seed, again, l.orphans)
		}
		l.mu.Unlock()
	}
}

// TestHeldOrder: what a project waits with begins in the order of its issue.
// What was cancelled meanwhile never begins, what was paused waits until it is
// resumed, and neither is counted. It holds with a bound of calls, and without.
func TestHeldOrder(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		calls int
		step  forge.Step
		at    int // how many are at the workers and cannot be overtaken any more
	}{{0, forge.StepImplement, 3}, {1, forge.StepAnalyze, 1}} {
		const all = 7
		s := bustest.StartServer(t)
		b, _ := run(t, s, quota.Limits{Calls: one.calls})
		f := newFloor()
		f.work(t, s.Connect(t), 1, one.step)
		if one.calls == 0 {
			quick := newFloor()
			quick.work(t, s.Connect(t), 1, forge.StepAnalyze)
			go func() {
				for range quick.started {
					quick.finish <- struct{}{}
				}
			}()
		}
		ask := func(ev forge.Event) {
			t.Helper()
			if r := asked(t, b, ev); r.Decision != forge.Applied {
				t.Fatalf("%s: %+v", ev.ID, r)
			}
		}
		of := func(i int) forge.Key {
			return forge.Key{Project: project, Intent: forge.IntentID(fmt.Sprintf("i-%d", i))}
		}
		for i := range all {
			ask(submission(of(i).Intent))
			awaitQueued(t, b, one.step, i+1)
		}
		var got []forge.IntentID
		next := func() {
			t.Helper()
			got = append(got, wait.For(t, f.started).To.Intent)
			f.finish <- struct{}{}
		}
		ask(forge.Event{ID: "cancel", To: of(one.at), Message: &forge.Cancel{}})
		left := all - 1
		awaitQueued(t, b, one.step, left)
		want := []forge.IntentID{"i-0", "i-2", "i-3", "i-4", "i-5", "i-6"}
		if one.calls == 0 {
			ask(forge.Event{ID: "pause", To: of(4), Message: &forge.Pause{}})
			awaitQueued(t, b, one.step, left-1)
			want = []forge.IntentID{"i-0", "i-1", "i-2", "i-5", "i-6", "i-4"}
			next()
			ask(forge.Event{ID: "resume", To: of(4), Message: &forge.Resume{}})
			awaitQueued(t, b, one.step, left-1)
		}
		for len(got) < len(want) {
			next()
		}
		if !slices.Equal(got, want) {
			t.Errorf("with a bound of %d begun are %v, want %v", one.calls, got, want)
		}
	}
}
