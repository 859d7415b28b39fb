package plan

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// A verifier of the version before two reviewers refuses a statement with a field that
// it does not know. So a change that one reviewer was enough for has none of these.
func TestOneReviewIsProvenAsBefore(t *testing.T) {
	for n, two := range map[int]bool{0: false, 1: false, 2: true} {
		claims := (&Gate{Hash: "h"}).Claims(&forge.Intent{}, &Change{Run: 1, Task: "a", Reviews: n, Policy: "c0ffee"})
		if got := strings.Contains(claims[0], `"policy":"c0ffee"`) && strings.Contains(claims[0], `"reviews":2`); got != two {
			t.Errorf("%d reviews: %s", n, claims[0])
		}
		if !two && (strings.Contains(claims[0], "reviews") || strings.Contains(claims[0], "policy")) {
			t.Errorf("%d reviews: %s", n, claims[0])
		}
	}
}
