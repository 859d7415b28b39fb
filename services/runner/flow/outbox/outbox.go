// Package outbox keeps what a state machine has asked for and not got yet:
// open commands, timers, and messages to other machines.
//
// Everything in it is in force. Effects repeats it, so that after a crash
// nothing that a decision asked for is lost. An entry leaves when its result
// arrives, when its timer fires, when its message is answered, or when a newer
// decision takes its place.
package outbox

import (
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// State is the outbox of one machine. Its lists are in the order in which the
// entries were asked for.
type State struct {
	Commands []forge.Command
	Timers   []forge.Timer
	Messages []Message
}

// Message is an event to another machine. It is repeated after crashes until
// Answered is called with its key, or another message takes its key.
type Message struct {
	Key   string
	Reply bool // the machine waits for an answer and is not idle before
	Event forge.Event
}

// Wants reports whether the result of an attempt is still waited for. A result
// of an older claim of the same attempt is not.
func (o *State) Wants(a forge.Attempt) bool {
	return o.index(a) >= 0
}

// index returns the place of an attempt's command; -1 if there is none.
func (o *State) index(a forge.Attempt) int {
	for i := range o.Commands {
		if o.Commands[i].Attempt == a {
			return i
		}
	}
	return -1
}

// Close removes an attempt's command.
func (o *State) Close(a forge.Attempt) {
	if i := o.index(a); i >= 0 {
		o.Commands = slices.Delete(o.Commands, i, i+1)
	}
}

// Reserved returns the amount that an open attempt may cost; 0 if there is no
// limit, or no such attempt.
func (o *State) Reserved(a forge.Attempt) float64 {
	if i := o.index(a); i >= 0 {
		return o.Commands[i].BudgetUSD
	}
	return 0
}

// Accounts returns the number of the knowledge of accounts under which an open
// attempt was issued; 0 if there is no such attempt.
func (o *State) Accounts(a forge.Attempt) int {
	if i := o.index(a); i >= 0 {
		return o.Commands[i].Accounts
	}
	return 0
}

// Answered removes the message with a key, if there is one.
func (o *State) Answered(key string) {
	o.Messages = slices.DeleteFunc(o.Messages, func(m Message) bool { return m.Key == key })
}

// CancelTimer removes the timer with a key, if there is one.
func (o *State) CancelTimer(key string) {
	o.Timers = slices.DeleteFunc(o.Timers, func(t forge.Timer) bool { return t.Key == key })
}

// HasTimer reports whether a timer is set under a key.
func (o *State) HasTimer(key string) bool {
	return slices.ContainsFunc(o.Timers, func(t forge.Timer) bool { return t.Key == key })
}

// HasTimerAt reports whether a timer is set under a key for exactly this time.
// A timer that was set anew is another one.
func (o *State) HasTimerAt(key string, at time.Time) bool {
	return slices.ContainsFunc(o.Timers, func(t forge.Timer) bool { return t.Key == key && t.At.Equal(at) })
}

// Idle reports whether nothing is waited for: no worker, no clock, and no other machine. Timers
// for which looks says so are not waited for: they look whether a person has done something.
func (o *State) Idle(looks func(timer string) bool) bool {
	return len(o.Commands) == 0 && !slices.ContainsFunc(o.Timers, func(t forge.Timer) bool { return !looks(t.Key) }) &&
		!slices.ContainsFunc(o.Messages, func(m Message) bool { return m.Reply })
}

// Earliest returns the time of the first timer whose key begins with prefix;
// zero if there is none.
func (o *State) Earliest(prefix string) time.Time {
	var first time.Time
	for _, t := range o.Timers {
		if strings.HasPrefix(t.Key, prefix) && (first.IsZero() || t.At.Before(first)) {
			first = t.At
		}
	}
	return first
}

// Attempts returns the attempts of the open commands.
func (o *State) Attempts() []forge.Attempt {
	var list []forge.Attempt
	for i := range o.Commands {
		list = append(list, o.Commands[i].Attempt)
	}
	return list
}

// Effects returns everything that has to be in force.
func (o *State) Effects() forge.Effects {
	e := forge.Effects{Commands: slices.Clone(o.Commands), Timers: slices.Clone(o.Timers)}
	for i := range o.Messages {
		e.Outbox = append(e.Outbox, o.Messages[i].Event)
	}
	return e
}

// Issue adds a command to the effects of a decision and keeps it open.
func (o *State) Issue(eff *forge.Effects, c *forge.Command) {
	o.Commands = append(o.Commands, *c)
	eff.Commands = append(eff.Commands, *c)
}

// Arm adds a timer to the effects of a decision. It takes the place of the one
// with the same key.
func (o *State) Arm(eff *forge.Effects, t forge.Timer) {
	o.CancelTimer(t.Key)
	o.Timers = append(o.Timers, t)
	eff.Timers = append(eff.Timers, t)
}

// Send adds a message to the effects of a decision. It takes the place of the
// one with the same key.
func (o *State) Send(eff *forge.Effects, m Message) {
	o.Answered(m.Key)
	o.Messages = append(o.Messages, m)
	eff.Outbox = append(eff.Outbox, m.Event)
}
