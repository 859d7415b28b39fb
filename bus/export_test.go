package bus

import "time"

// HeldResults is how long workers get before commands are dispatched again.
const HeldResults = heldResults

// StalledAfter makes Guard less patient with streams in memory.
func (b *Bus) StalledAfter(d time.Duration) { b.stalledAfter = d }

// AnswerTimeout makes the publishing of results less patient with runners.
func (b *Bus) AnswerTimeout(d time.Duration) { b.conn.AnswerTimeout = d }
