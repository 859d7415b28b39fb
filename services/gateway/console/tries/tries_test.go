package tries

import (
	"fmt"
	"testing"
	"time"
)

// TestTries: failures of one address are bounded, whichever port, notation or
// rest of its network it has; others are not.
func TestTries(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tries := New(func() time.Time { return now })
	fails := func(remote string) bool { return tries.Failed(remote) == 0 }
	for i := range each {
		if !fails(fmt.Sprintf("[2001:db8::%x]:%d", i+1, 1000+i)) || !fails(fmt.Sprintf("192.0.2.1:%d", 1000+i)) {
			t.Fatalf("try %d is refused", i)
		}
	}
	for _, remote := range []string{"[2001:db8::ffff:1]:5", "192.0.2.1:5", "[::ffff:192.0.2.1]:5"} {
		if wait := tries.Failed(remote); wait <= 0 || wait > eachEvery {
			t.Errorf("%s waits %v", remote, wait)
		}
	}
	if !fails("192.0.2.2:1") || !fails("[2001:db8:0:1::1]:1") {
		t.Error("another address is refused")
	}
	if now = now.Add(eachEvery); !fails("192.0.2.1:5") || fails("192.0.2.1:5") {
		t.Error("one more may fail after the wait, and no second one")
	}
}

// TestTriesAltogether: however many addresses there are, all of them together
// are bounded, and so is what is remembered of them.
func TestTriesAltogether(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tries := New(func() time.Time { return now })
	failed := 0
	for i := range 3 * mostAddresses {
		if tries.Failed(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)) == 0 {
			failed++
		}
		if len(tries.each) > mostAddresses {
			t.Fatalf("%d addresses are remembered", len(tries.each))
		}
	}
	if failed != all {
		t.Errorf("%d could fail, want %d", failed, all)
	}
	if tries.Failed("no address") <= 0 {
		t.Error("what is no address is not bounded")
	}
}
