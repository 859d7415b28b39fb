package gateway

import (
	"context"
	"math"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/price"
)

// comfortable is the output, in tokens, below which a request waits for those beside it
// rather than being answered with less, and maxKnown how many answered requests a grant
// remembers.
const (
	comfortable = 8192
	maxKnown    = 8
)

// balance is the money of a call: what its requests have cost is in Grant.byModel.
type balance struct {
	// reserved bounds the cost of the requests that run, and held that of those which ended
	// without saying it.
	reserved, held float64
	// running counts the requests that run.
	running int
	// freed is closed when one of them ends.
	freed chan struct{}
	// answered are the requests that were answered last.
	answered []precedent
	// refused says that a request was refused because the rest could not pay for it.
	refused bool
}

// reservation holds the money of one request.
type reservation struct {
	grant   *Grant
	request *request
	// usd bounds the cost of the request, input the part of it that is for its
	// text, and each is the cost of a token of output.
	usd, input, each float64
}

// reserve reserves the money of a request, and returns the request as it is to be sent. It
// waits for requests beside it whose end may leave enough.
//
// Which of two requests goes first is not decided here: both look again when one ends, and the
// one that finds enough takes it. A call rarely has more than a few at a time.
func (g *Grant) reserve(ctx context.Context, q *request, body []byte) (*reservation, []byte, *refusal) {
	for {
		r, output, freed := g.tryReserve(q)
		switch {
		case r != nil:
			var err error
			if output < q.output {
				body, err = q.lower(output)
			}
			if err == nil {
				body, err = q.reporting(body)
			}
			if err != nil {
				r.release(0)
				return nil, nil, errUncountable(err.Error())
			}
			return r, body, nil
		case freed == nil:
			return nil, nil, errBudget
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, nil, errGrantClosed
		}
	}
}

// tryReserve reserves money for a request and returns the output that it may have. Without a
// reservation, freed says when it is worth another try; nil means never.
func (g *Grant) tryReserve(q *request) (r *reservation, output int64, freed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.balance
	input := q.input
	for i := range p.answered {
		input = min(input, p.answered[i].beyond(q))
	}
	in, each := q.usd(input)
	left := g.limit.USD - cost(g.byModel) - p.reserved - p.held
	fits := q.output
	if each > 0 {
		fits = min(fits, int64(math.Floor((left-in)/each)))
	}
	least := min(q.output, minOutput)
	if _, thinks := q.fields["thinking"]; thinks && q.knob.thinking {
		least = min(q.output, 2*minOutput)
	}
	// The order of the cases is that of what a call would want: the whole answer or a good part
	// of it now, then the whole of it later, then a short one, and last none.
	switch {
	case fits >= min(q.output, comfortable):
	case p.running > 0:
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		return nil, 0, p.freed
	case fits < least || in > left:
		p.refused = true
		return nil, 0, nil
	}
	r = &reservation{grant: g, request: q, usd: in + float64(fits)*each, input: in, each: each}
	p.reserved += r.usd
	p.running++
	return r, fits, nil
}

// release ends a reservation; held bounds the cost of the request beside the
// tokens that were counted.
func (r *reservation) release(held float64) {
	g := r.grant
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.balance
	p.reserved -= r.usd
	p.held += held
	if p.running--; p.running == 0 {
		p.reserved = 0 // whatever the sums of fractions left
	}
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}

// commit ends the reservation of a request by its answer. An answer that broke off, or did not
// say what it has cost, may have cost its input and a token for each byte that came.
func (r *reservation) commit(m *meter) {
	switch {
	case m.rejected:
		r.release(0) // nobody answered, or with an error, which costs nothing
	case m.complete():
		r.release(0)
		r.grant.remember(r.request, m.count.usage)
	default:
		most := r.usd
		if m.stream {
			most = min(most, r.input+float64(m.received)*r.each)
		}
		r.release(max(most-price.Cost(m.count.model, m.count.usage), 0))
	}
}

// remember notes the tokens of a request that was answered.
func (g *Grant) remember(q *request, u forge.Usage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.balance
	if len(p.answered) == maxKnown {
		p.answered = p.answered[1:]
	}
	p.answered = append(p.answered, precedent{q.model, q.texts, u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens})
}

// Spent reports whether a request was refused because what is left of the
// budget could not pay for it.
func (g *Grant) Spent() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.balance.refused
}
