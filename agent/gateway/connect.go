package gateway

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// Connect returns an agent.Connect that opens a grant for each call, with the call's
// budget; where the sandbox has no network, with no way out through the provider. Without
// a key for the provider it adds nothing, and the CLI reports that it has no login.
func (g *Gateway) Connect(p Provider) agent.Connect {
	return func(ctx context.Context, call agent.Call) (agent.Connection, error) {
		grant, err := g.Open(ctx, p, Limit{
			USD:       call.Limits.BudgetUSD,
			ModelOnly: call.Sandbox != nil && call.Sandbox.Network != sandbox.NetworkFull,
		})
		if errors.Is(err, ErrNoAccount) {
			return agent.Connection{}, nil
		}
		if err != nil {
			return agent.Connection{}, err
		}
		return agent.Connection{Env: grant.Env(), Usage: grant.Usage, Limited: grant.Limited, Spent: grant.Spent, Close: grant.Close}, nil
	}
}
