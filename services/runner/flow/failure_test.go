package flow

import (
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// TestEveryReasonHasARule reads the closed set where it is declared.
func TestEveryReasonHasARule(t *testing.T) {
	source, err := os.ReadFile("../../../failure.go")
	if err != nil {
		t.Fatal(err)
	}
	var declared []forge.FailureReason
	for _, m := range regexp.MustCompile(`FailureReason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		declared = append(declared, forge.FailureReason(m[1]))
	}
	slices.Sort(declared)
	if ruled := slices.Sorted(maps.Keys(rule.Failures)); !slices.Equal(declared, ruled) || len(ruled) == 0 {
		t.Errorf("declared %q\nwith rule %q", declared, ruled)
	}
}

// TestBoundsAreRuledAlike: an attempt that filled its part of the disk has the
// same consequence as one that printed too much, which it was reported as
// before it had a reason of its own. So no decision of a journal changes.
func TestBoundsAreRuledAlike(t *testing.T) {
	if got, want := rule.Failures[forge.FailDiskLimit], rule.Failures[forge.FailOutputLimit]; got != want || !got.Explain {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// anyReason is some reason, or one that this version does not know.
func anyReason(rng *rand.Rand) forge.FailureReason {
	reasons := append(slices.Sorted(maps.Keys(rule.Failures)), "new")
	return reasons[rng.IntN(len(reasons))]
}
