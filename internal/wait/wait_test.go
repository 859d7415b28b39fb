package wait_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// failing is a test that may fail; like a real one, it ends with its goroutine.
type failing struct {
	testing.TB
	failed bool
}

func (f *failing) Fatalf(string, ...any) {
	f.failed = true
	panic(f)
}

// fails reports whether a wait failed its test, and after how long.
func fails(t *testing.T, fn func(*failing)) (failed bool, after time.Duration) {
	t.Helper()
	f := &failing{TB: t}
	began := time.Now()
	defer func() {
		if r := recover(); r != nil && r != any(f) {
			panic(r)
		}
		failed, after = f.failed, time.Since(began)
	}()
	fn(f)
	return
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		late := func(d time.Duration) func() bool { return func() bool { return time.Since(began) >= d } }
		if failed, _ := fails(t, func(f *failing) { wait.Until(f, "it is late", late(wait.Patience-time.Second)) }); failed {
			t.Error("lost its patience too early")
		}
		failed, after := fails(t, func(f *failing) { wait.Until(f, "never", func() bool { return false }) })
		if !failed || after > wait.Patience+time.Second {
			t.Errorf("failed %t after %s", failed, after)
		}
	})
}

// What takes long is not asked for all the time, and what comes soon is seen soon.
func TestSeldom(t *testing.T) {
	for after, most := range map[time.Duration]int{time.Minute: 140, 100 * time.Millisecond: 12} {
		synctest.Test(t, func(t *testing.T) {
			began, polls := time.Now(), 0
			wait.Seldom(t, "it is late", func() bool { polls++; return time.Since(began) >= after })
			if took := time.Since(began); polls > most || took > after+min(after/2, time.Second/2) {
				t.Errorf("%d polls in %s for what takes %s", polls, took, after)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		failed, after := fails(t, func(f *failing) { wait.Seldom(f, "never", func() bool { return false }) })
		if !failed || after > wait.Patience+time.Second {
			t.Errorf("failed %t after %s", failed, after)
		}
	})
}

// Something that moves may take as long as it likes.
func TestMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		steps := func() time.Duration { return min(time.Since(began), time.Hour) / wait.Patience * 2 }
		failed, after := fails(t, func(f *failing) { wait.Moving(f, "never", func() bool { return false }, steps) })
		if !failed || after < time.Hour || after > time.Hour+wait.Patience+time.Second {
			t.Errorf("failed %t after %s", failed, after)
		}
	})
}

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan int, 1)
		c <- 3
		if got := wait.For(t, c); got != 3 {
			t.Errorf("got %d", got)
		}
		if failed, after := fails(t, func(f *failing) { wait.For(f, c) }); !failed || after != wait.Patience {
			t.Errorf("failed %t after %s", failed, after)
		}
		close(c)
		if got := wait.For(t, c); got != 0 {
			t.Errorf("got %d", got)
		}
	})
}

func TestPoll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	if !wait.Poll(ctx, func() bool { n++; return n > 2 }) {
		t.Error("it holds")
	}
	cancel()
	if wait.Poll(ctx, func() bool { return false }) {
		t.Error("the context has ended")
	}
}

func TestContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bounded, cancel := wait.Bounded()
		defer cancel()
		for ctx, want := range map[context.Context]time.Duration{
			wait.Context(t): wait.Patience, bounded: wait.Patience, wait.Briefly(t, time.Second): time.Second,
		} {
			if at, _ := ctx.Deadline(); time.Until(at) != want {
				t.Errorf("ends after %s, want %s", time.Until(at), want)
			}
		}
	})
}

func TestWhileMoving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, moved := wait.WhileMoving(t)
		for range 5 {
			time.Sleep(wait.Patience - time.Second) //nolint:forbidigo // time is what is tested
			if ctx.Err() != nil {
				t.Fatal("it moves, and is given up")
			}
			moved()
		}
		began := time.Now()
		if <-ctx.Done(); time.Since(began) != wait.Patience {
			t.Errorf("given up after %s", time.Since(began))
		}
	})
}

func TestMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			began := time.Now()
			if d := (<-wait.Moment(rng, time.Second, 2*time.Second)).Sub(began); d < time.Second || d >= 2*time.Second {
				t.Errorf("after %s", d)
			}
		}
	})
}
