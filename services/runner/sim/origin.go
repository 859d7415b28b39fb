package sim

import (
	"fmt"
	"slices"
	"strings"
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

// checkOrigin returns an error if an intent failed because the origin was away, if several tell a person that it is, or if
// a project looks for it twice at a time.
func checkOrigin(key forge.Key, rec *forge.Record) error {
	if s := &rec.Summary; s.Status.Failed() && strings.Contains(s.Reason, string(forge.FailOrigin)+": ") {
		return fmt.Errorf("%s failed because the origin was away: %s", key, s.Reason)
	}
	asked, probes := map[forge.IntentID]bool{}, 0
	refused, newest := false, 0
	for i := range rec.Effects.Outbox {
		m := forge.As[*forge.AccountsChanged](rec.Effects.Outbox[i].Message)
		if m == nil {
			continue
		}
		if m.Number > newest { // of several events that were decided together, the last counts
			newest, refused = m.Number, false
			clear(asked)
		}
		refused = refused || slices.ContainsFunc(m.Closed, func(c forge.ClosedAccount) bool { return c.Agent != forge.GitOrigin })
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
