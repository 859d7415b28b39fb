package runner

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/plan"
)

// dispatched remembers effects.
type dispatched struct{ eff forge.Effects }

func (d *dispatched) Dispatch(_ context.Context, _ forge.Key, eff forge.Effects) error {
	d.eff = eff
	return nil
}

// The claims of the rules are signed where a merge is dispatched, in the form that package proof
// reads; the machine's own command stays as it was, and a worker cannot have anything signed.
func TestClaimsAreSigned(t *testing.T) {
	t.Parallel()
	key, err := proof.Derive([]byte("a seed for tests that is long enough"), "runner")
	if err != nil {
		t.Fatal(err)
	}
	rules := forge.Approvals{Count: 2, NotRequester: true, Commit: "c"}
	gate := plan.Gate{Hash: "0123456789ab", Approved: &approval.Granted{Rules: rules, Approvals: []approval.Approval{
		{What: approval.OfPlan, Hash: "0123456789ab", By: "ada", Event: "e1"}, {What: approval.OfPlan, Hash: "0123456789ab", By: "eve", Event: "e3"},
	}}}
	changes := &approval.Granted{Approvals: []approval.Approval{{What: approval.OfChanges, Hash: "ba9876543210", By: "bob", Event: "e2"}}}
	in := forge.Intent{
		ID: "fix", Project: "shop", Settings: forge.Settings{Title: "Fix <it> & \u2028 more", Risk: forge.RiskMed},
		Requesters: []forge.Identity{{Name: "zoe", Proven: true}, {Name: "bot"}},
	}
	change := &forge.QueueMerge{
		Task: "fix-001", Base: "b", Tree: "t", PatchID: "p", Statements: []forge.Envelope{"of a worker"},
		Claims: gate.Claims(&in, &plan.Change{Run: 2, Task: "fix-001", Approved: changes, Reviews: 2, Policy: "b"}),
	}
	eff := forge.Effects{Commands: []forge.Command{
		{Attempt: forge.Attempt{Step: forge.StepReview}},
		{Attempt: forge.Attempt{Step: forge.StepMerge}, Input: &forge.MergeInput{Change: change}},
	}}
	var out dispatched
	n := notary{&out, func() (*proof.Key, error) { return key, nil }}
	if err := n.Dispatch(t.Context(), forge.Key{}, eff); err != nil {
		t.Fatal(err)
	}
	if len(change.Claims) != 4 || len(change.Statements) != 1 || eff.Commands[1].Merge().Change != change {
		t.Errorf("the machine's command was changed: %+v", change)
	}
	got := out.eff.Commands[1].Merge().Change
	if len(got.Claims) != 0 || len(got.Statements) != 5 || got.Statements[0] != "of a worker" {
		t.Fatalf("got %+v", got)
	}
	var approvers []string
	for _, e := range got.Statements[1:] {
		s, err := proof.Unseal(e)
		if err != nil {
			t.Fatal(err)
		}
		about, p, err := s.Statement()
		if err != nil || about != (proof.Change{Tree: "t", Parent: "b", Patch: "p"}) {
			t.Error(about, err)
		}
		switch p := p.(type) {
		case *proof.Plan:
			if p.Plan != gate.Hash || p.Run != 2 || p.Of.Task != "fix-001" || p.Reviews != 2 || p.Policy != "b" ||
				!slices.Equal(p.Needs, []proof.Need{{What: "plan", Count: 2, NotRequester: true, Policy: "c"}, {What: "changes", Count: 1}}) ||
				!slices.Equal(p.Requesters, []proof.Requester{{Name: "zoe", Proven: true}, {Name: "bot"}}) {
				t.Errorf("got %+v", p)
			}
		case *proof.Approval:
			approvers = append(approvers, p.By+" "+p.What+" "+p.Event)
		}
	}
	if !slices.Equal(approvers, []string{"ada plan e1", "eve plan e3", "bob changes e2"}) {
		t.Errorf("approved: %q", approvers)
	}
	n.key = nil
	if err := n.Dispatch(t.Context(), forge.Key{}, eff); err != nil || len(out.eff.Commands[1].Merge().Change.Statements) != 1 {
		t.Errorf("without a key: %+v, %v", out.eff, err)
	}
	n.key = func() (*proof.Key, error) { return nil, errors.New("no key") }
	if err := n.Dispatch(t.Context(), forge.Key{}, eff); err == nil {
		t.Error("a key that cannot be read signs nothing, and nobody is told")
	}
}
