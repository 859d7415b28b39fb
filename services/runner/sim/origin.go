package sim

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// outages is the git origin, which does not answer for a while in some worlds.
type outages struct {
	away bool
}

// outage returns the result of an attempt to which the origin does not answer, or that was told so; nil if it answers. Once the
// faults stopped it does, which only a probe finds out.
func (w worker) outage(c *forge.Command) *forge.Result {
	if slices.Contains(c.ClosedAgents, forge.GitOrigin) {
		return &forge.Result{Output: &forge.Failure{Reason: forge.FailHeld, Message: "the origin does not answer"}}
	}
	if w.seed%4 != 0 || !w.faults {
		return nil
	}
	if w.rng.IntN(25) == 0 {
		w.outages.away = !w.outages.away
		w.log("the origin is away: %t", w.outages.away)
	}
	// One replica may be cut off alone.
	if !w.outages.away && !w.chance(60) {
		return nil
	}
	if c.Attempt.Step == forge.StepProbe { // whose worker has waited meanwhile
		w.now = w.now.Add(c.Probe().Patience + time.Second)
	}
	return &forge.Result{Output: &forge.Failure{Reason: forge.FailOrigin, Message: "nobody listens"}}
}
