// Package facts says what journals and answers show, without the rules of flow:
// the simulator compares those with it.
//
// The simulator gives every record to the checkers here (Accounts, Looks, Once, Pushes, Train,
// Turns and the Check functions), which keep what they need and return an error where a
// decision contradicts it. They may not import flow, or a wrong rule would agree with itself.
package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Accounts is read from an intent's journal: which accounts it was told to refuse calls.
type Accounts struct {
	number int
	closed []forge.Obstacle
	base   base
}

// Learn records the newest list that the project told.
func (a *Accounts) Learn(ev *forge.Event) {
	told := forge.As[*forge.ObstaclesChanged](ev.Message)
	if m := forge.As[*forge.RunAdmitted](ev.Message); m != nil {
		told = m.Obstacles
	}
	if told != nil && told.Number > a.number {
		a.number, a.closed = told.Number, told.Closed
	}
}

// Check returns an error if an agent may be called although its account is
// known to refuse calls, or if an intent failed by that. Of several events that
// were decided together the order is not known.
func (a *Accounts) Check(key forge.Key, rec *forge.Record, callsAgent func(*forge.Command) bool) error {
	// With a project that keeps accounts, a bad key is a reason to wait, and never one to fail.
	if s := &rec.Summary; s.Status.Failed() && strings.Contains(s.Reason, string(forge.FailAuth)+": ") {
		return fmt.Errorf("%s failed by refused credentials: %s", key, s.Reason)
	}
	if len(rec.Events) > 1 {
		return nil
	}
	red := slices.ContainsFunc(a.closed, func(c forge.Obstacle) bool { return c.Agent == forge.GitBase })
	if err := a.base.check(rec, red); err != nil {
		return err
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		for _, closed := range a.closed {
			if closed.Agent == forge.GitPush || closed.Agent == forge.GitBase || closed.Agent == forge.AnyReplica ||
				!callsAgent(c) && closed.Agent != forge.GitOrigin {
				continue
			}
			if (closed.Until.IsZero() || closed.Until.After(rec.Events[0].At)) && !slices.Contains(c.ClosedAgents, closed.Agent) {
				return fmt.Errorf("%s of %s was issued without saying that the account of %s refuses calls", c.Attempt, key, closed.Agent)
			}
		}
	}
	return nil
}
