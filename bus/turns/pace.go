package turns

import "time"

const (
	// least is how many commands may wait at the workers of a step in any case.
	// With two there is one to take while the next one is moved.
	least = 2
	// most bounds the same where workers are so quick that the count is worth nothing.
	most = 1024
	// span is the time in which workers are to take what waits for them: longer queues
	// keep other projects waiting, shorter ones would leave quick workers idle, and have
	// commands held that would be taken at once: to hold one costs more than to issue it.
	span = time.Second
)

// pace finds out how many commands may wait at the workers of a line, by how
// many they have taken lately. Where a command takes longer than span, that is
// at most one for each place that there is at the workers.
type pace struct {
	// base is how many they had taken at since.
	base  uint64
	since time.Time
	// last is how many they took in a span before that.
	last int
}

// look takes how many commands workers have taken up to now, and returns how many may wait.
func (p *pace) look(now time.Time, taken uint64) int {
	if p.since.IsZero() || taken < p.base { // the consumer is a new one
		*p = pace{base: taken, since: now}
	}
	n := int(min(taken-p.base, most))
	if passed := now.Sub(p.since); passed >= span {
		n = int(time.Duration(n) * span / passed)
		*p = pace{base: taken, since: now, last: n}
	}
	return min(max(n, p.last, least), most)
}
