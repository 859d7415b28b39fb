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

// TestPart has each case in one of the parts, and all cases without a part.
func TestPart(t *testing.T) {
	cases := []int{0, 1, 2, 3, 4, 5, 6}
	t.Setenv(testsize.PartVariable, "")
	if got := testsize.Part(t, cases); !slices.Equal(got, cases) {
		t.Errorf("without a part there are %v", got)
	}
	var all []int
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		t.Setenv(testsize.PartVariable, part)
		list := testsize.Part(t, cases)
		if len(list) < 2 || len(list) > 3 {
			t.Errorf("%s has %v", part, list)
		}
		all = append(all, list...)
	}
	if slices.Sort(all); !slices.Equal(all, cases) {
		t.Errorf("the parts have %v together", all)
	}
}
