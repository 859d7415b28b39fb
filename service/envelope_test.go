package service

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/service/withheld"
)

// A signed statement reaches the runner as it was signed, although it looks
// like a token; one with a secret in it does not.
func TestEnvelopesAreToldWhole(t *testing.T) {
	t.Parallel()
	key, err := proof.Derive([]byte(strings.Repeat("a", 32)), "reviewer")
	if err != nil {
		t.Fatal(err)
	}
	const secret = "correct-horse-battery-staple"
	for model, told := range map[string]bool{"claude-opus-5": true, secret: false} {
		e, err := key.State(proof.Change{Tree: "t", Parent: "p"}, &proof.Review{Model: model, Verdict: proof.VerdictApproved})
		if err != nil {
			t.Fatal(err)
		}
		res := withheld.Result(redact.New(secret), forge.Result{Output: &forge.Review{Statement: e}})
		if got := forge.As[*forge.Review](res.Output).Statement; (got == e) != told || !told && got != "" {
			t.Errorf("%s: told %q", model, got)
		}
	}
	res := withheld.Result(redact.New(secret), forge.Result{Output: &forge.Rebase{Statement: "no envelope"}})
	if got := forge.As[*forge.Rebase](res.Output).Statement; got != "" {
		t.Errorf("told %q", got)
	}
}
