package jobs

import (
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

// TestRefusedAlone: credentials that are refused again and again, while the
// project is open, are those of this replica. Refusals at one moment count
// once, and any other end of a command begins anew.
func TestRefusedAlone(t *testing.T) {
	t.Parallel()
	refused := &git.Error{Stderr: "fatal: Authentication failed for 'https://git.example.com/a'"}
	var r refusals
	for n := range 2 * maxRefusals {
		if r.observe(refused) {
			t.Fatalf("alone after %d refusals at one moment", n+1)
		}
	}
	r = refusals{}
	for n := range maxRefusals + 1 {
		r.last = r.last.Add(-refusalPause)
		if alone := r.observe(refused); alone != (n == maxRefusals) {
			t.Errorf("after %d refusals: alone is %v", n+1, alone)
		}
	}
	r.observe(nil)
	r.last = r.last.Add(-refusalPause)
	if r.observe(refused) {
		t.Error("alone after a command that went well")
	}
}
