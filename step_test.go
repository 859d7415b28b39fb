package forge

import (
	"slices"
	"testing"
)

// Every step is in the table once, with the service that carries it out.
func TestSteps(t *testing.T) {
	services := []string{"analyzer", "implementer", "reviewer", "reflector", "gateway"}
	seen := map[Step]bool{}
	for _, s := range Steps() {
		if seen[s] {
			t.Errorf("%s is there twice", s)
		}
		seen[s] = true
		if !slices.Contains(services, s.Service()) {
			t.Errorf("%s is carried out by %q", s, s.Service())
		}
		if parsed, err := ParseStep(string(s)); err != nil || parsed != s {
			t.Errorf("ParseStep(%q) is %q, %v", s, parsed, err)
		}
	}
	if s := Step("verify"); s.Service() != "" || s.OfTask() || s.CallsAgent() {
		t.Error("a word that is no step has properties of one")
	}
}
