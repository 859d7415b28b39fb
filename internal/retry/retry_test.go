package retry

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	p := Pace{First: 100 * time.Millisecond, Most: time.Second}
	for i, milliseconds := range []int{100, 200, 400, 800, 1000, 1000} {
		longest := time.Duration(milliseconds) * time.Millisecond
		if d := p.Pause(); d < longest/2 || d > longest {
			t.Errorf("pause %d is %v, not half to all of %v", i, d, longest)
		}
	}
	seen := map[time.Duration]bool{}
	for range 20 {
		seen[p.Pause()] = true
	}
	if len(seen) < 2 {
		t.Error("all pauses are the same")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	long := Pace{First: time.Hour, Most: time.Hour}
	if err := long.Sleep(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNotices(t *testing.T) {
	var n Notices
	start := time.Now()
	var at []int
	for second := range 1300 {
		if n.Due(start.Add(time.Duration(second) * time.Second)) {
			at = append(at, second)
		}
	}
	if want := []int{0, 10, 30, 70, 150, 310, 610, 910, 1210}; !slices.Equal(at, want) {
		t.Errorf("logged after %v seconds, want %v", at, want)
	}
	n.Reset()
	if n.Any() || !n.Due(start) {
		t.Error("the first failure after a success is not logged")
	}
}
