// Package wait is how tests wait: for the thing itself, as long as something moves.
//
// A machine that is busy with other work makes every step slow, and a test must not
// fail for that. So no wait ends because a step took longer than usual; a watchdog ends
// it when nothing at all has happened for [Patience], which is far longer than any step
// takes on any machine, and shorter than what go test allows a package.
//
// The walls in internal/imports keep every other clock out of the tests.
package wait

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"
)

// Patience is how long nothing may happen before a wait fails its test.
const Patience = 3 * time.Minute

// Until polls cond until it holds. It fails the test if cond has not held after
// [Patience]; what completes the sentence "waited in vain until ...".
func Until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	Moving(t, what, cond, func() bool { return false })
}

// Moving is [Until] for something that takes many steps: it fails the test only if
// progress has returned the same value for [Patience]. It also serves for a cond that
// fails the test by itself.
func Moving[P comparable](t testing.TB, what string, cond func() bool, progress func() P) {
	t.Helper()
	poll(t, what, longest, cond, progress)
}

// Seldom is [Until] for a cond that costs others time, such as a request to a server that many
// tests share. What holds soon is seen soon; what takes long is asked for twice a second.
func Seldom(t testing.TB, what string, cond func() bool) {
	t.Helper()
	poll(t, what, seldom, cond, func() bool { return false })
}

// poll polls cond, with pauses that grow up to the longest, until it holds, and
// fails the test if progress has returned the same for Patience.
func poll[P comparable](t testing.TB, what string, longest time.Duration, cond func() bool, progress func() P) {
	t.Helper()
	last, since := progress(), time.Now()
	for pause := shortest; !cond(); pause = next(pause, longest) {
		time.Sleep(pause) //nolint:forbidigo // the one place that polls
		if now := progress(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) > Patience {
			t.Fatalf("waited in vain until %s: nothing has moved for %s", what, Patience)
		}
	}
}

// Poll polls cond until it holds or the context ends, and reports whether it holds.
// It is for goroutines, which must not end a test, and for what may never happen.
func Poll(ctx context.Context, cond func() bool) bool {
	for pause := shortest; !cond(); pause = next(pause, longest) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	return true
}

// For returns the next value of a channel, or the zero value if the channel is closed.
// It fails the test if neither happens within [Patience].
func For[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited in vain for a %T", *new(T))
		panic("unreachable")
	}
}

// Context returns a context for calls that either come back or hang: it ends with the
// test, cleanups included, or after [Patience].
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	t.Cleanup(cancel)
	return ctx
}

// WhileMoving returns a context that ends when moved has not been called for [Patience],
// or with the test. It is for one long call that reports its steps.
func WhileMoving(t testing.TB) (ctx context.Context, moved func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	watchdog := time.AfterFunc(Patience, cancel)
	t.Cleanup(func() { watchdog.Stop() })
	return ctx, func() { watchdog.Reset(Patience) }
}

// Bounded is [Context] for code that has no test at hand, such as a process that a test
// starts.
func Bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Patience)
}

// Briefly returns a context that ends after d. It is for calls that must not succeed,
// or that must end with their context. The time itself is under test, nothing is waited for.
func Briefly(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Moment returns a channel that is sent to at a random moment of [least, most). It is
// for what is to be interrupted anywhere, such as a process that is killed.
func Moment(rng *rand.Rand, least, most time.Duration) <-chan time.Time {
	return time.After(least + time.Duration(rng.Int64N(int64(most-least))))
}

const (
	shortest = time.Millisecond
	longest  = 25 * time.Millisecond
	seldom   = 500 * time.Millisecond
)

// next makes polls rarer: what comes soon is seen soon, and what takes long is not
// slowed down by those who wait for it.
func next(pause, longest time.Duration) time.Duration { return min(pause*3/2, longest) }
