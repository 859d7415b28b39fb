package service

import "context"

// Permits bounds how many agents run at the same time in this process. Workers of
// several steps may share one.
type Permits struct{ slots chan struct{} }

// NewPermits returns n permits; n must be positive.
func NewPermits(n int) *Permits { return &Permits{slots: make(chan struct{}, n)} }

// acquire waits for a permit until ctx ends.
func (p *Permits) acquire(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Permits) release() { <-p.slots }
