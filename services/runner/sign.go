package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/services/runner/machine"
)

// notary dispatches effects as its Outbox does, and signs what the rules claim of
// the plan and the approvals of a merge. That is in no journal: whoever
// dispatches a merge again signs it again, with the same result.
type notary struct {
	machine.Outbox

	key proof.Source
}

// Dispatch signs the claims of merges before it sends them. Without a key they
// are left out.
func (n notary) Dispatch(ctx context.Context, to forge.Key, eff forge.Effects) error {
	for i := range eff.Commands {
		if eff.Commands[i].Attempt.Step != forge.StepMerge {
			continue
		}
		signed, err := n.signed(eff.Commands[i].Merge().Change)
		if err != nil {
			return fmt.Errorf("dispatch for %s: %w", to, err)
		}
		eff.Commands = slices.Clone(eff.Commands) // the machine's own stay as they are
		in := eff.Commands[i].Merge()
		in.Change = signed
		eff.Commands[i].Input = &in
	}
	return n.Outbox.Dispatch(ctx, to, eff)
}

// signed returns a change with its claims as signed statements about it.
func (n notary) signed(c *forge.QueueMerge) (*forge.QueueMerge, error) {
	key, err := n.key.Key()
	if err != nil {
		return nil, fmt.Errorf("the plan and the approvals of a merge cannot be signed: %w", err)
	}
	if c == nil {
		return nil, nil //nolint:nilnil // the worker says what is wrong with it
	}
	signed := *c
	signed.Claims, signed.Statements = nil, slices.Clone(c.Statements)
	if key == nil {
		return &signed, nil
	}
	// The claims are of the rules, never of a worker: only the machine writes them, and
	// statements of workers are carried beside them as they are.
	about := proof.Change{Tree: c.Tree, Parent: c.Base, Patch: c.PatchID}
	for _, claim := range c.Claims {
		p, err := proof.ParseClaim(claim)
		if err != nil {
			return nil, err
		}
		s, err := key.State(about, p)
		if err != nil {
			return nil, err
		}
		signed.Statements = append(signed.Statements, s)
	}
	return &signed, nil
}
