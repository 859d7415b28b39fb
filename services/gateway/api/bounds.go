package api

import (
	"crypto/sha256"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// rates bounds how often each token asks.
type rates struct {
	perSecond rate.Limit
	burst     int

	mu   sync.Mutex
	each map[string]*rate.Limiter
}

func newRates(perSecond float64, burst int) *rates {
	return &rates{perSecond: rate.Limit(perSecond), burst: burst, each: map[string]*rate.Limiter{}}
}

// allow reports whether a token may ask now. There are as many limiters as names in the
// file, since only those get here.
func (r *rates) allow(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.each[name]
	if l == nil {
		l = rate.NewLimiter(r.perSecond, r.burst)
		r.each[name] = l
	}
	return l.Allow()
}

// mostStrangers bounds the strangers that are remembered. Those beyond share one limit.
const mostStrangers = 10_000

// strangers bounds how often each person asks who has an account at an issuer
// and no entry of the file. It is safe for concurrent use.
type strangers struct {
	perSecond rate.Limit
	burst     int
	now       func() time.Time

	mu sync.Mutex
	// each has the limits by a hash of issuer and subject, so that an entry has
	// the same size whatever they are called.
	each map[[sha256.Size]byte]*rate.Limiter
	rest *rate.Limiter
	// swept is when those who need not be remembered were looked for last, as
	// each stranger could have that done.
	swept time.Time
}

// sweepEvery is how often that is done at most.
const sweepEvery = time.Second

func newStrangers(perSecond float64, burst int, now func() time.Time) *strangers {
	limit := rate.Limit(perSecond)
	return &strangers{perSecond: limit, burst: burst, now: now, each: map[[sha256.Size]byte]*rate.Limiter{}, rest: rate.NewLimiter(limit, burst)}
}

// allow reports whether a stranger may ask now.
func (s *strangers) allow(issuer, subject string) bool {
	now, who := s.now(), sha256.Sum256([]byte(issuer+"\x00"+subject))
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.each[who]
	if l == nil && len(s.each) >= mostStrangers && now.Sub(s.swept) >= sweepEvery {
		s.swept = now
		for known, l := range s.each { // those who could ask as often as at first need not be remembered
			if l.TokensAt(now) >= float64(s.burst) {
				delete(s.each, known)
			}
		}
	}
	switch {
	case l != nil:
	case len(s.each) >= mostStrangers:
		l = s.rest
	default:
		l = rate.NewLimiter(s.perSecond, s.burst)
		s.each[who] = l
	}
	return l.AllowN(now, 1)
}

// counts bounds how many are there at the same time, together and of one name.
type counts struct {
	most, mostOwn int

	mu   sync.Mutex
	all  int
	each map[string]int
}

func newCounts(most, mostOwn int) *counts {
	return &counts{most: most, mostOwn: mostOwn, each: map[string]int{}}
}

// enter counts one of a name; false if there are as many as there may be.
func (c *counts) enter(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most || c.each[name] >= c.mostOwn {
		return false
	}
	c.all++
	c.each[name]++
	return true
}

// leave takes back an enter.
func (c *counts) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.each[name]--; c.each[name] == 0 {
		delete(c.each, name)
	}
}
