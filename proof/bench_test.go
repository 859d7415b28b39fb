package proof_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/proof"
)

// BenchmarkState makes a signed statement.
func BenchmarkState(b *testing.B) {
	k, err := proof.Derive([]byte(strings.Repeat("a", 32)), "reviewer")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := k.State(change, reviewed(proof.VerdictApproved)); err != nil {
			b.Fatal(err)
		}
	}
}
