// Package origins says what must hold of each decision while a git origin is
// away. It knows nothing of the world that is simulated.
//
// The simulator asks an Origin whether a worker reaches it, may push, or is overtaken, and
// gives every record to Check. An origin that is away fails no intent, costs no attempt,
// and is reported to people once. Which worlds have such an origin follows from their seed.
package origins

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Check returns an error if an intent failed because the origin was away, if several tell a
// person that it is or that it refuses pushes, or if a project looks for it twice at a time.
func Check(key forge.Key, rec *forge.Record) error {
	if s := &rec.Summary; s.Status.Failed() && strings.Contains(s.Reason, string(forge.FailOrigin)+": ") {
		return fmt.Errorf("%s failed because the origin was away: %s", key, s.Reason)
	}
	asked, probes := map[forge.IntentID]bool{}, 0
	refused, newest := false, 0
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.ObstaclesChanged](rec.Effects.Outbox[i].Message)
		if m == nil {
			continue
		}
		if m.Number > newest { // of several events that were decided together, the last counts
			newest, refused = m.Number, false
			clear(asked)
		}
		refused = refused || slices.ContainsFunc(m.Closed, func(c forge.Obstacle) bool {
			return c.Agent != forge.GitOrigin && c.Agent != forge.GitPush && c.Agent != forge.GitBase && c.Agent != forge.AnyReplica
		})
		if m.Asks && m.Number == newest {
			asked[rec.Effects.Outbox[i].To.Intent] = true
		}
	}
	for _, a := range rec.Summary.Open {
		if a.Step == forge.StepProbe {
			probes++
		}
	}
	switch {
	case len(asked) > 1 && !refused:
		return fmt.Errorf("%d intents tell a person that the origin is away", len(asked))
	case probes > 1:
		return fmt.Errorf("%d probes at a time", probes)
	}
	return nil
}
