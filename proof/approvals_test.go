package proof_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/proof"
)

// A plan that claims to need less than the configuration of its base asks for is not believed.
func TestApprovalsAreHeldToThePolicy(t *testing.T) {
	p := newParty(t, "a")
	for name, c := range map[string]struct {
		count int
		own   bool
		floor proof.Floor
		want  string
	}{
		"as it says":        {count: 2, floor: proof.Floor{Count: 2, NotRequester: true, Approvers: []string{"ada", "bob"}}},
		"more than it says": {count: 2, floor: proof.Floor{Count: 1}},
		"fewer approvals":   {count: 1, floor: proof.Floor{Count: 2}, want: "asks for 1 approvals of the plan, and policy.approvals.count"},
		"none is one":       {count: 0, floor: proof.Floor{Count: 1}},
		"the requester may": {count: 1, own: true, floor: proof.Floor{Count: 1, NotRequester: true}, want: "lets those approve the plan who asked for it"},
		"by another person": {count: 1, floor: proof.Floor{Count: 1, Approvers: []string{"bob"}}, want: "ada approved the plan, and is not among policy.approvers"},
	} {
		plan := shared(c.count)
		plan.Needs[0].NotRequester = !c.own
		r := proof.Check(p.commit(), proof.Bundle(
			p.whole()[0], p.whole()[1], p.state("runner", change, plan), p.state("runner", change, approved(proof.OfPlan, "0123456789ab")),
			p.state("runner", change, approvedBy("bob", proof.OfPlan, "0123456789ab")),
		), p.signers, samePatch)
		for _, n := range r.Needs() {
			r.Hold(n, c.floor)
		}
		if got := strings.Join(r.Problems, "; "); (c.want == "") != r.OK() || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
