package document

import (
	"strings"
	"testing"
)

// A reason is given once on a page, be it alone or behind what it is the reason of.
func TestSaid(t *testing.T) {
	var said Said
	long := strings.Repeat("long ", 60) + "end"
	for _, reason := range []string{"", "fix-001: gave up: a.txt:1: is wrong\nits output", "gave up: c.txt: is empty (Nothing was committed)", long} {
		said.Add(reason)
	}
	for reason, want := range map[string]bool{
		"a.txt:1: is wrong": true, "fix-001: gave up: a.txt:1: is wrong": true, "fix-001: gave up: a.txt:1: is wrong\nits output": true,
		"is": false, "wrong": false, "b.txt:1: is wrong": false, "its output": false, "": false,
	} {
		if got := said.Has(reason); got != want {
			t.Errorf("%q was given: %t, want %t", reason, got, want)
		}
	}
	for line, want := range map[string]string{
		"error: fix-001: gave up: a.txt:1: is wrong":           "error",
		"review: rejected: a.txt:1: is wrong (0.1s)":           "review: rejected (0.1s)",
		"review: rejected: is wrong too (0.1s)":                "review: rejected: is wrong too (0.1s)",
		"implement: is wrong (0.1s)":                           "implement: is wrong (0.1s)",
		"review: rejected: c.txt: is empty (0.1s)":             "review: rejected (0.1s)",
		"review: rejected: b.txt:1: is wrong (0.1s)":           "review: rejected: b.txt:1: is wrong (0.1s)",
		"review: rejected: " + long[:maxReason-1] + "… (0.1s)": "review: rejected (0.1s)",
	} {
		if got := said.Rest(line); got != want {
			t.Errorf("the rest of %q is %q, want %q", line, got, want)
		}
	}
}
