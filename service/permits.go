package service

// Permits bounds how many agents run at the same time in this process. Workers of
// several steps may share one.
type Permits struct{ slots chan struct{} }

// NewPermits returns n permits; n must be positive.
func NewPermits(n int) *Permits { return &Permits{slots: make(chan struct{}, n)} }

// acquire waits for a permit. It is false if done was closed before.
func (p *Permits) acquire(done <-chan struct{}) bool {
	select {
	case p.slots <- struct{}{}:
		return true
	case <-done:
		return false
	}
}

func (p *Permits) release() { <-p.slots }
