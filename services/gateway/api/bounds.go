package api

import (
	"sync"

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
