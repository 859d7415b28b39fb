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

// tokenPrefix makes a token recognizable, for example in a log.
const tokenPrefix = "pfl-forge-" //nolint:gosec // it is no secret

// Limit bounds the use of a grant.
type Limit struct {
	// USD is the list price that all requests together never exceed: a request that could
	// is lowered, or refused. 0 means no limit.
	USD float64
	// ModelOnly says that the provider may reach nothing for the call, because the call's
	// network is the model alone; see screen.
	ModelOnly bool
}

// Grant is one call's access to the models of one provider. It is safe for concurrent
// use.
type Grant struct {
	gateway *Gateway
	account *Account
	token   string
	hash    [sha256.Size]byte
	limit   Limit

	// ctx ends when the grant is closed, and with it every request.
	ctx      context.Context //nolint:containedctx // the life of the grant, which every request shares
	cancel   context.CancelFunc
	inFlight sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// byModel has the tokens so far, without their cost.
	byModel  map[string]forge.Usage
	requests int
	// limited is until when the model refuses requests.
	limited time.Time
	// balance has the money of requests that have not ended.
	balance balance
}

// newGrant returns a grant with a random token.
func newGrant(ctx context.Context, g *Gateway, account *Account, limit Limit) *Grant {
	token := tokenPrefix + rand.Text() + rand.Text()
	grant := &Grant{
		gateway: g, account: account, token: token, hash: sha256.Sum256([]byte(token)), limit: limit,
		byModel: map[string]forge.Usage{},
	}
	grant.ctx, grant.cancel = context.WithCancel(ctx)
	return grant
}

// Env returns the variables that make a CLI use the grant: address, token, and an
// exception from any proxy.
func (g *Grant) Env() []string {
	a := g.account.api
	return []string{
		a.baseVar + "=http://" + g.gateway.address + a.prefix,
		g.account.key.variable + "=" + g.token,
		"NO_PROXY=127.0.0.1",
	}
}

// Close ends the grant and the requests in progress, and waits for them. Afterwards
// Usage is final.
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

// acquire admits a request, or returns why not. After nil, release must be called.
func (g *Grant) acquire() *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.ctx.Err() != nil {
		return errGrantClosed
	}
	// Under the lock, so that Close waits for every request that was admitted.
	g.inFlight.Add(1)
	return nil
}

// count counts a request that is forwarded.
func (g *Grant) count() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests++
}

// release ends a request that acquire admitted.
func (g *Grant) release() { g.inFlight.Done() }

// add counts tokens that a response reports. Those of a response that is cut off count
// as far as it got.
func (g *Grant) add(model string, u forge.Usage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byModel[model] = g.byModel[model].Add(u)
}

// ByModel returns the tokens counted so far and their list price, by model.
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

// Usage returns the sum of ByModel.
func (g *Grant) Usage() forge.Usage {
	var sum forge.Usage
	for _, u := range g.ByModel() {
		sum = sum.Add(u)
	}
	return sum
}

// setLimited stores until when the model refuses requests; zero if it does not.
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

// Requests returns the number of requests that were forwarded.
func (g *Grant) Requests() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests
}

// cost returns the list price of tokens by model.
func cost(used map[string]forge.Usage) float64 {
	var sum float64
	for model, u := range used {
		sum += price.Cost(model, u)
	}
	return sum
}
