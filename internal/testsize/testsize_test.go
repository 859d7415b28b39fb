package testsize_test

import (
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

func TestSizes(t *testing.T) {
	cases := []string{"a", "b", "c"}
	t.Setenv(testsize.Variable, "")
	if testsize.Full() || testsize.Of(2, 100) != 2 || !slices.Equal(testsize.First(2, cases), []string{"a", "b"}) {
		t.Error("not quick by default")
	}
	if got := testsize.First(9, cases); len(got) != 3 {
		t.Errorf("the first nine of three are %q", got)
	}
	t.Setenv(testsize.Variable, "full")
	if !testsize.Full() || testsize.Of(2, 100) != 100 || !slices.Equal(testsize.First(2, cases), cases) {
		t.Error("not in full when asked for")
	}
}

func TestOnlyFull(t *testing.T) {
	for size, want := range map[string]bool{"": true, "full": false} {
		t.Setenv(testsize.Variable, size)
		s := &skips{TB: t}
		testsize.OnlyFull(s)
		if s.skipped != want {
			t.Errorf("size %q: skipped %t, want %t", size, s.skipped, want)
		}
	}
}

// skips records a skip instead of carrying it out: in the full size a skip is a failure.
type skips struct {
	testing.TB
	skipped bool
}

func (s *skips) Skipf(string, ...any) { s.skipped = true }
