package vitals

import (
	"sync"
	"time"
)

// aloneFor is how long a replica that alone does not reach an origin says so, before it says
// once more that the origin is away: by then no other one has taken the command either.
const aloneFor = 10 * time.Second

// Origin tells an origin that is away from one that this replica alone cannot reach. The
// project knows which of the two it is: it is told of every failure, has one replica
// look, and counts what it learns (Command.Accounts). So a command that was issued after
// the project had heard otherwise, and fails here for the same reason, fails here alone:
//
//	reached --fails--> failed, reported --fails, and the project knows more--> alone
//	   ^                  |                                                      |
//	   +------------------+----------------- is reached from here ---------------+
//
// A replica that is the only one reports again and again, since it is itself who looks.
// It is safe for concurrent use, and the zero value is of an origin that was reached.
type Origin struct {
	mu sync.Mutex
	// failed says that a failure was reported since it was reached.
	failed bool
	// known is the number of the project's knowledge under which the newest
	// failed command was issued.
	known int
	// since is when it was found that others reach it; zero if that is not so.
	since time.Time
}

// Failed takes that a command could not reach the origin, and reports whether that
// is so from this replica alone. Otherwise it is to be reported. known is the number
// of the project's knowledge with which the command was issued; 0: it says none.
func (o *Origin) Failed(known int, now time.Time) (alone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	heard := o.failed && known > o.known
	o.failed, o.known = true, max(o.known, known)
	if o.since.IsZero() && heard {
		o.since = now
	}
	return !o.since.IsZero() && now.Sub(o.since) < aloneFor
}

// Reached takes that the origin was reached from here.
func (o *Origin) Reached() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed, o.since = false, time.Time{}
}
