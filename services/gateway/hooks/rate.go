package hooks

import (
	"sync"
	"time"
)

// bucket bounds a rate: it holds what may come at once, and fills again evenly.
type bucket struct {
	// perMinute is the rate; a sixth of it may come at once, and at least ten.
	perMinute int

	mu   sync.Mutex
	left float64
	last time.Time
}

// take takes one from the bucket, or returns after how long there is one again.
func (b *bucket) take(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	rate := float64(b.perMinute) / 60 // a second
	most := max(float64(b.perMinute)/6, 10)
	if b.last.IsZero() {
		b.left = most
	} else if passed := now.Sub(b.last); passed > 0 {
		b.left = min(most, b.left+rate*passed.Seconds())
	}
	b.last = now
	if b.left < 1 {
		return time.Duration((1 - b.left) / rate * float64(time.Second))
	}
	b.left--
	return 0
}
