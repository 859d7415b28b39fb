package gateway

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/agent"
)

// Connect returns an agent.Connect that opens a grant for each call, with the call's
// budget. Without a key for the provider it adds nothing, and the CLI reports that it
// has no login.
func (g *Gateway) Connect(p Provider) agent.Connect {
	return func(ctx context.Context, call agent.Call) (agent.Connection, error) {
		grant, err := g.Open(ctx, p, Limit{USD: call.Limits.BudgetUSD})
		if errors.Is(err, ErrNoAccount) {
			return agent.Connection{}, nil
		}
		if err != nil {
			return agent.Connection{}, err
		}
		return agent.Connection{Env: grant.Env(), Usage: grant.Usage, Limited: grant.Limited, Close: grant.Close}, nil
	}
}
