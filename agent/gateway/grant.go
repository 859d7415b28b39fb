package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/price"
)

// tokenPrefix makes a token look like what it is, in a log for example.
const tokenPrefix = "pfl-forge-" //nolint:gosec // it is no secret

// Limit bounds what a grant is good for.
type Limit struct {
	USD float64 // after which no request is let through; 0 means none
}

// Grant is one call's access to the models of a provider.
type Grant struct {
	gateway *Gateway
	account *Account
	token   string
	hash    [sha256.Size]byte
	limit   Limit

	ctx      context.Context //nolint:containedctx // the life of the grant, which every request shares
	cancel   context.CancelFunc
	inFlight sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	byModel  map[string]forge.Usage // by model
	requests int
	limited  time.Time // when the last refusal ends
}

func newGrant(ctx context.Context, g *Gateway, account *Account, limit Limit) *Grant {
	token := tokenPrefix + rand.Text() + rand.Text()
	grant := &Grant{
		gateway: g, account: account, token: token, hash: sha256.Sum256([]byte(token)), limit: limit,
		byModel: map[string]forge.Usage{},
	}
	grant.ctx, grant.cancel = context.WithCancel(ctx)
	return grant
}

// Env returns the variables by which a CLI uses the grant.
func (g *Grant) Env() []string {
	a := g.account.api
	return []string{
		a.baseVar + "=http://" + g.gateway.address + a.prefix,
		g.account.key.variable + "=" + g.token,
		"NO_PROXY=127.0.0.1",
	}
}

// Close ends the grant and whatever it let through. Usage is complete afterwards.
func (g *Grant) Close() {
	g.gateway.mu.Lock()
	delete(g.gateway.grants, g.hash)
	g.gateway.mu.Unlock()

	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
	g.inFlight.Wait()
}

// acquire lets a request through, or says why not. After nil, leave must be called.
func (g *Grant) acquire() *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed || g.ctx.Err() != nil:
		return errGrantClosed
	case g.limit.USD > 0 && cost(g.byModel) >= g.limit.USD:
		return errBudget
	}
	g.requests++
	g.inFlight.Add(1)
	return nil
}

func (g *Grant) release() { g.inFlight.Done() }

// add counts what a response reports. A response that is cut off counts as far as it came.
func (g *Grant) add(model string, u forge.Usage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byModel[model] = g.byModel[model].Add(u)
}

// ByModel returns what the models counted so far: tokens, and their list price.
func (g *Grant) ByModel() map[string]forge.Usage {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := maps.Clone(g.byModel)
	for model, u := range out {
		u.CostUSD = price.Cost(model, u)
		out[model] = u
	}
	return out
}

// Usage is the sum of ByModel.
func (g *Grant) Usage() forge.Usage {
	var sum forge.Usage
	for _, u := range g.ByModel() {
		sum = sum.Add(u)
	}
	return sum
}

// setLimited notes until when a model refuses requests; zero if it does not.
func (g *Grant) setLimited(limited time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limited = limited
}

// Limited returns until when the model refuses requests, as its last answer said; zero
// if it did not refuse, or did not say.
func (g *Grant) Limited() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limited
}

// Requests returns how many requests were let through.
func (g *Grant) Requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests
}

func cost(used map[string]forge.Usage) float64 {
	var sum float64
	for model, u := range used {
		sum += price.Cost(model, u)
	}
	return sum
}
