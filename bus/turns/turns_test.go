package turns

import (
	"testing"
	"time"
)

// TestPace: at least two may wait; workers that take many in a second may have
// as many, and those that have become slow may not any more.
func TestPace(t *testing.T) {
	var p pace
	at := time.Unix(1000, 0)
	for i, one := range []struct {
		after time.Duration
		taken uint64
		want  int
	}{
		{0, 500, least}, // those before this process
		{time.Millisecond, 504, 4},
		{time.Millisecond, 504, 4},
		{span, 504, 3},       // 4 in 102 ms
		{span / 2, 504, 3},   // what was seen in the span before counts
		{span, 504, least},   // and no longer
		{10 * span, 604, 10}, // 100 in a second
		{span, 5000, most},
		{span, 5000, least},
		{span, 3, least}, // a new consumer
		{span, 23, 20},
		{time.Hour, 24, least},
	} {
		at = at.Add(one.after)
		if got := p.look(at, one.taken); got != one.want {
			t.Errorf("look %d: %d may wait, want %d", i, got, one.want)
		}
	}
}
