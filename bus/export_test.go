package bus

import "time"

// StalledAfter makes Guard less patient with streams in memory.
func (b *Bus) StalledAfter(d time.Duration) { b.stalledAfter = d }
