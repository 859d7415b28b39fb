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
	maker := func() (int, error) {
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
