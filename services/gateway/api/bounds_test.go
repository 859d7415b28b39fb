package api

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestStrangers: each person without an entry has a limit of their own,
// whatever they are called; what is remembered of them is bounded, and those
// beyond share one limit until others have not asked for a while.
func TestStrangers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := newStrangers(1, 2, func() time.Time { return now })
	may := func(subject string) bool { return s.allow("https://issuer", subject) }
	twice := func(subject string) bool { // and not more often
		first, second, third := may(subject), may(subject), may(subject)
		return first && second && !third
	}
	long := strings.Repeat("x", 250)
	for _, subject := range []string{long + "1", long + "2"} {
		if !twice(subject) {
			t.Errorf("%s: not two at once", subject)
		}
	}
	if !s.allow("https://issuer2", long+"1") || !s.allow("https://issue", "r"+long) {
		t.Error("the subject of another issuer is the same person")
	}
	for n := range 2 * mostStrangers {
		may(fmt.Sprint(n))
	}
	if n := len(s.each); n != mostStrangers {
		t.Errorf("%d are remembered", n)
	}
	if may("one more") {
		t.Error("those beyond have no limit")
	}
	if may(long + "1") {
		t.Error("a flood has the limit of another forgotten")
	}
	now = now.Add(2 * time.Second)
	if !twice("one more") || len(s.each) != 1 {
		t.Errorf("after a while %d are remembered", len(s.each))
	}
}
