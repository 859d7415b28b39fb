// Package tries bounds how often signing in may fail: from one address, and altogether.
//
// A token has 256 random bits and is not guessed, whatever the bound is. It keeps the
// log of a gateway from being filled with failures. Only failures count: many people
// can have one address, that of a proxy, and none of them is to keep the others out.
package tries

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// each and eachEvery bound one address: so many at once, and then one in
	// this time. all and allEvery bound everybody.
	each, eachEvery = 10, 6 * time.Second
	all, allEvery   = 300, 200 * time.Millisecond
	// mostAddresses bounds the addresses that are remembered. Those beyond share one bound.
	mostAddresses = 10_000
	// network is how much of an address of IPv6 counts: a household has as many
	// as it likes of the rest.
	network = 64
)

// Tries counts. It is safe for concurrent use.
type Tries struct {
	now func() time.Time

	mu   sync.Mutex
	each map[netip.Addr]*rate.Limiter
	rest *rate.Limiter
	all  *rate.Limiter
}

// New returns Tries with a clock.
func New(now func() time.Time) *Tries {
	return &Tries{now: now, each: map[netip.Addr]*rate.Limiter{}, rest: limiter(eachEvery, each), all: limiter(allEvery, all)}
}

// limiter returns one that allows so many at once, and then one in a time.
func limiter(every time.Duration, burst int) *rate.Limiter {
	return rate.NewLimiter(rate.Every(every), burst)
}

// Failed takes a failure from an address, as net/http has it in RemoteAddr. If
// there were too many, it returns how long to wait before the next.
func (t *Tries) Failed(remote string) (wait time.Duration) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.of(remote, now).ReserveN(now, 1)
	if wait = own.DelayFrom(now); wait > 0 {
		own.CancelAt(now)
		return wait
	}
	common := t.all.ReserveN(now, 1)
	if wait = common.DelayFrom(now); wait > 0 {
		common.CancelAt(now)
		own.CancelAt(now)
	}
	return wait
}

// of returns the limiter of an address.
func (t *Tries) of(remote string, now time.Time) *rate.Limiter {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return t.rest
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is6() {
		if prefix, err := addr.Prefix(network); err == nil {
			addr = prefix.Addr()
		}
	}
	if l := t.each[addr]; l != nil {
		return l
	}
	if len(t.each) >= mostAddresses {
		for addr, l := range t.each { // those that could fail as often as at first say nothing
			if l.TokensAt(now) >= each {
				delete(t.each, addr)
			}
		}
	}
	if len(t.each) >= mostAddresses {
		return t.rest
	}
	l := limiter(eachEvery, each)
	t.each[addr] = l
	return l
}
