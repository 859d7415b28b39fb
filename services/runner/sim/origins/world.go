package origins

import (
	"math/rand/v2"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/facts"
)

// lateRefusals bounds the refusals after the other faults stopped: most changes
// are merged only then. latePushes does so for pushes that overtake a change.
const (
	lateRefusals = 6
	latePushes   = 40
)

// Origin is the git origin of a world. In some worlds it does not answer for a while,
// in others a hook refuses every push for a while, and those of some tasks for ever. In
// others people push faster than changes are verified, for a long time. Then they stop.
type Origin struct {
	facts.Pushes

	// Turns are those of the changes that are overtaken.
	Turns facts.Turns

	away, closed bool
	late         int
}

// Away reports whether the origin does not answer a worker. One replica may be cut
// off alone. Once the faults stopped it answers, which only a probe finds out.
func (o *Origin) Away(rng *rand.Rand, seed uint64, faults bool) bool {
	if seed%4 != 0 || !faults {
		return false
	}
	if rng.IntN(25) == 0 {
		o.away = !o.away
	}
	return o.away || rng.IntN(60) == 0
}

// Refuses reports whether a hook refuses the push of a task. It changes its mind
// at any push, also between the two of a round, and some tasks never get past it
// in such a world. It ends, so that what waits comes to rest without a person.
func (o *Origin) Refuses(rng *rand.Rand, seed uint64, faults bool, task forge.TaskID) bool {
	if seed%4 != 1 || !faults && o.late == lateRefusals {
		return false
	}
	if rng.IntN(4) == 0 {
		o.closed = !o.closed
	}
	sum := 0
	for _, b := range []byte(task) {
		sum += int(b)
	}
	refuses := o.closed || seed%8 == 1 && sum%3 == 0
	if refuses && !faults {
		o.late++
	}
	return refuses
}

// Busy reports whether a world is one in which people push faster than changes are verified.
func Busy(seed uint64) bool { return seed%16 == 10 }

// Overtakes reports whether a person pushes while a change is verified.
func (o *Origin) Overtakes(rng *rand.Rand, seed uint64, faults bool) bool {
	if !Busy(seed) || !faults && o.late == latePushes || rng.IntN(12) == 0 {
		return false
	}
	if !faults {
		o.late++
	}
	return true
}
