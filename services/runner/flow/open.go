package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// open is what a machine has asked for and not got yet. What is in it is in
// force: Pending repeats it after a crash.
type open struct {
	commands []forge.Command
	timers   []forge.Timer
	notes    []note
}

// note is an event to another machine. A newer note under the same key takes
// the place of an older one.
type note struct {
	key   string
	reply bool // an answer is awaited
	event forge.Event
}

func (o *open) wants(a forge.Attempt) bool {
	return slices.ContainsFunc(o.commands, func(c forge.Command) bool { return c.Attempt == a })
}

func (o *open) closeAttempt(a forge.Attempt) {
	o.commands = slices.DeleteFunc(o.commands, func(c forge.Command) bool { return c.Attempt == a })
}

// budget is what was set aside for an attempt.
func (o *open) budget(a forge.Attempt) float64 {
	i := slices.IndexFunc(o.commands, func(c forge.Command) bool { return c.Attempt == a })
	if i < 0 {
		return 0
	}
	return o.commands[i].BudgetUSD
}

func (o *open) closeNote(key string) {
	o.notes = slices.DeleteFunc(o.notes, func(n note) bool { return n.key == key })
}

func (o *open) cancelTimer(key string) {
	o.timers = slices.DeleteFunc(o.timers, func(t forge.Timer) bool { return t.Key == key })
}

func (o *open) hasTimer(key string) bool {
	return slices.ContainsFunc(o.timers, func(t forge.Timer) bool { return t.Key == key })
}

func (o *open) hasTimerAt(key string, at time.Time) bool {
	return slices.ContainsFunc(o.timers, func(t forge.Timer) bool { return t.Key == key && t.At.Equal(at) })
}

// idle reports whether nothing is awaited from a worker, a clock or the other
// machine.
func (o *open) idle() bool {
	return len(o.commands) == 0 && len(o.timers) == 0 &&
		!slices.ContainsFunc(o.notes, func(n note) bool { return n.reply })
}

// parkedUntil is when the first step that waits for its time goes on; zero if none does.
func (o *open) parkedUntil() time.Time {
	var first time.Time
	for _, t := range o.timers {
		if strings.HasPrefix(t.Key, "park/") && (first.IsZero() || t.At.Before(first)) {
			first = t.At
		}
	}
	return first
}

func (o *open) attempts() []forge.Attempt {
	var list []forge.Attempt
	for i := range o.commands {
		list = append(list, o.commands[i].Attempt)
	}
	return list
}

func (o *open) pending() forge.Effects {
	e := forge.Effects{Commands: slices.Clone(o.commands), Timers: slices.Clone(o.timers)}
	for _, n := range o.notes {
		e.Outbox = append(e.Outbox, n.event)
	}
	return e
}

// issue sends a command and keeps it open.
func (o *open) issue(eff *forge.Effects, c forge.Command) {
	o.commands = append(o.commands, c)
	eff.Commands = append(eff.Commands, c)
}

// arm sets a timer, or sets it anew.
func (o *open) arm(eff *forge.Effects, t forge.Timer) {
	o.cancelTimer(t.Key)
	o.timers = append(o.timers, t)
	eff.Timers = append(eff.Timers, t)
}

// tell sends an event to another machine and keeps repeating it after crashes
// until closeNote.
func (o *open) tell(eff *forge.Effects, key string, reply bool, ev forge.Event) {
	o.closeNote(key)
	o.notes = append(o.notes, note{key: key, reply: reply, event: ev})
	eff.Outbox = append(eff.Outbox, ev)
}

// Pending returns every effect that has to be in force, in the order in which
// they were asked for.
func (s *Intent) Pending() forge.Effects { return s.open.pending() }

// noteID names a note; the same decision always makes the same name.
func noteID(from forge.Key, key string, ev forge.Event) string {
	n := 0
	switch m := ev.Message.(type) {
	case *forge.AdmitRun:
		n = m.Run
	case *forge.RunPlanned:
		n = m.Run
	case *forge.ReserveBudget:
		n = m.Number
	case *forge.CommitBudget:
		n = m.Number
	case *forge.QueueMerge:
		n = m.Number
	case *forge.LockFiles:
		n = m.Number
	case *forge.WithdrawRequests:
		n = m.Number
	case *forge.RunEnded:
		n = m.Number
	}
	return fmt.Sprintf("%s/%s/%d", from.Intent, key, n)
}
