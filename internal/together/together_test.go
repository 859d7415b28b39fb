package together

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDo: those who ask while an answer is being made share the next one, which begins afterwards;
// other keys are apart; one who leaves takes nothing from the others; nothing is kept.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[int]
		var calls atomic.Int64
		release := make(chan struct{})
		ask := func(ctx context.Context, want int, wrong error) {
			n, err := g.Do(ctx, "k", func() (int, error) {
				<-release
				return int(calls.Add(1)), nil
			})
			if n != want || !errors.Is(err, wrong) {
				t.Errorf("%d, %v, want %d, %v", n, err, want, wrong)
			}
		}
		leaves, leave := context.WithCancel(t.Context())
		go ask(leaves, 0, context.Canceled)
		synctest.Wait() // the first answer is being made
		for range 20 {
			go ask(t.Context(), 2, nil)
		}
		synctest.Wait() // all have asked
		if n, err := g.Do(t.Context(), "other", func() (int, error) { return 7, errors.New("wrong") }); n != 7 || err == nil {
			t.Errorf("another key: %d, %v", n, err)
		}
		leave()
		synctest.Wait()
		close(release)
		synctest.Wait()
		if calls.Load() != 2 || len(g.under) != 0 {
			t.Errorf("%d answers were made, %d keys are kept", calls.Load(), len(g.under))
		}
	})
}

// TestGather: who asks before an answer has begun shares it.
func TestGather(t *testing.T) {
	begins := make(chan struct{})
	g := Group[int]{Gather: func() { <-begins }}
	var calls atomic.Int64
	ask := func(ctx context.Context) (int, error) {
		return g.Do(ctx, "k", func() (int, error) { return int(calls.Add(1)), nil })
	}
	var asking sync.WaitGroup
	asking.Go(func() {
		if n, err := ask(wait.Context(t)); n != 1 || err != nil {
			t.Errorf("the first: %d, %v", n, err)
		}
	})
	wait.Until(t, "one has asked", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.under) == 1 })
	for range 3 { // they share, and leave
		if n, err := ask(canceled(t)); n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d, %v", n, err)
		}
	}
	close(begins)
	asking.Wait()
	if calls.Load() != 1 {
		t.Errorf("%d answers were made", calls.Load())
	}
}

// TestAlone: an error of the one whose answer all wait for is told to that one, and
// the others share another answer; any other is told to all, and costs one answer.
func TestAlone(t *testing.T) {
	barred, away := errors.New("barred"), errors.New("away")
	for wrong, want := range map[error][2]int64{barred: {2, 1}, away: {1, 20}} {
		synctest.Test(t, func(t *testing.T) {
			begins := make(chan struct{})
			g := Group[int]{Gather: func() { <-begins }, Alone: func(err error) bool { return errors.Is(err, barred) }}
			var calls, failed atomic.Int64
			var asking sync.WaitGroup
			for range 20 {
				asking.Go(func() {
					_, err := g.Do(t.Context(), "k", func() (int, error) {
						if n := int(calls.Add(1)); n > 1 {
							return n, nil
						}
						return 0, wrong
					})
					if err != nil {
						failed.Add(1)
					}
				})
			}
			for range want[0] {
				synctest.Wait() // all have asked
				begins <- struct{}{}
			}
			synctest.Wait()
			close(begins) // for those who ask once more than they should
			asking.Wait()
			if got := [2]int64{calls.Load(), failed.Load()}; got != want {
				t.Errorf("%v: %d answers, of which %d got the error, want %v", wrong, got[0], got[1], want)
			}
		})
	}
}

// canceled returns a context that is over.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
