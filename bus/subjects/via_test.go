package subjects

import (
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// TestOnlyAccountsComeThroughGateways: what comes through a gateway names it, and
// for whom it speaks is a name that a person or a system can have. A name that could
// be taken for another one on a terminal, or for pfl-forge itself, is in no journal.
func TestOnlyAccountsComeThroughGateways(t *testing.T) {
	for _, s := range []string{"by.ada.via.gateway.approve", "from.ci-2.via.gateway.submit", "by.ada.approve", "by.Ada=20L=2e.approve"} {
		if _, err := ParseIntent("forge.intent.shop." + s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for _, s := range []string{
		"by.ada.via.ada.approve", "by.ada.via.runner.approve", "by.ada.via.other.approve", "by.gateway.via.gateway.approve",
		"by.runner.via.gateway.approve", "by.server.via.gateway.approve", "from.reviewer.via.gateway.submit",
		"by.=e2=80=ae.via.gateway.approve", "by.=00.via.gateway.approve", "by.=20.via.gateway.approve", "by.Ada.via.gateway.approve",
		"by.=.via.gateway.approve", "from.=e2=80=8b.via.gateway.submit",
	} {
		if from, err := ParseIntent("forge.intent.shop." + s); err == nil {
			t.Errorf("%s is taken as from %+v", s, from)
		}
	}
	k := forge.Key{Project: "shop", Intent: "fix"}
	for _, c := range []struct{ name, gateway string }{{"gateway", "gateway"}, {"ada\u202e", "gateway"}, {"", "gateway"}, {"ada", "runner"}} {
		if s, err := PersonalVia(k, c.name, c.gateway, "approve"); err == nil {
			t.Errorf("a person's is %q", s)
		}
		if s, err := SubmissionVia(k.Project, c.name, c.gateway); err == nil {
			t.Errorf("a system's is %q", s)
		}
	}
}
