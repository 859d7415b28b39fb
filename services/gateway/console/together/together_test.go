package together

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDo: those who ask while an answer is being made share the next one, which begins afterwards; other keys are apart; one who leaves takes
// nothing from the others.
func TestDo(t *testing.T) {
	var g Group[int]
	var calls atomic.Int64
	begun, release := make(chan struct{}, 10), make(chan struct{})
	maker := func() (int, error) { //nolint:unparam // as Do wants it
		n := int(calls.Add(1))
		begun <- struct{}{}
		<-release
		return n, nil
	}
	ctx := wait.Context(t)
	leaves, leave := context.WithCancel(ctx)
	var asking sync.WaitGroup
	first := func(ctx context.Context, want int, wrong error) {
		if n, _, err := g.Do(ctx, "k", maker); n < want || !errors.Is(err, wrong) {
			t.Errorf("%d, %v, want %d or later, %v", n, err, want, wrong)
		}
	}
	asking.Go(func() { first(leaves, 0, context.Canceled) })
	wait.For(t, begun)
	asked := func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.under["k"].next != nil
	}
	for range 20 {
		asking.Go(func() { first(ctx, 2, nil) })
	}
	wait.Until(t, "another one is asked for", asked)
	if n, own, err := g.Do(ctx, "other", func() (int, error) { return 7, errors.New("wrong") }); n != 7 || !own || err == nil {
		t.Errorf("another key: %d, %v, %v", n, own, err)
	}
	leave()
	close(release)
	asking.Wait()
	if n := calls.Load(); n != 2 && n != 3 { // one of the twenty may come after the second answer began
		t.Errorf("%d answers were made", n)
	}
	wait.Until(t, "nothing is kept", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.under) == 0 })
}

// TestGather: who asks before an answer has begun shares it.
func TestGather(t *testing.T) {
	begins := make(chan struct{})
	g := Group[int]{Gather: func() { <-begins }}
	var calls atomic.Int64
	ask := func(ctx context.Context) (int, bool, error) {
		return g.Do(ctx, "k", func() (int, error) { return int(calls.Add(1)), nil })
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		if n, own, err := ask(wait.Context(t)); n != 1 || !own || err != nil {
			t.Errorf("the first: %d, %v, %v", n, own, err)
		}
	})
	wait.Until(t, "one has asked", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.under) == 1 })
	for range 3 { // they share, and leave
		if n, own, err := ask(canceled(t)); n != 0 || own || !errors.Is(err, context.Canceled) {
			t.Errorf("%d, %v, %v", n, own, err)
		}
	}
	close(begins)
	asking.Wait()
	if calls.Load() != 1 {
		t.Errorf("%d answers were made", calls.Load())
	}
}

// canceled returns a context that is over.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
