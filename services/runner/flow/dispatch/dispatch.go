// Package dispatch brings an intent's commands to the workers. Before a command
// is issued it is held while there is a pause, and waits for its share of the
// budget if it costs any:
//
//	command -> held (until resume) -> waits for budget -> open -> result
//	           ^                                            |
//	           +--------------- a pause begins -------------+
//
// If a budget has no room for a waiting command, the command
// is refused: Turn.Refused has it, and a person has to act.
//
// An open command whose result is not needed any more is withdrawn. Its worker still
// reports what it cost.
package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/obstacle"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pause"
)

// State holds the commands of an intent: those that are open, held, or wait for
// budget.
type State struct {
	// Outbox has the commands that were issued.
	Outbox outbox.State
	// Held are not to be issued while there is a pause.
	Held []forge.Command
	// Waiting are the calls that wait for budget, in the order in which they get it.
	Waiting []Call
	// Messages is the number of the newest message about budget to the project.
	Messages int
	// Unbilled were withdrawn, and their costs are still to come.
	Unbilled []forge.Attempt
}

// Call is a command that waits for budget.
type Call struct {
	// Command is issued once there is budget for it.
	Command forge.Command
	// Asked is the number of the message in which the project was asked, and whose answer is
	// waited for; 0: it was not asked.
	Asked int
}

// Turn carries the facts that one decision depends on, and collects its results.
type Turn struct {
	// Key is the intent's.
	Key forge.Key
	// Now is when the event was first read.
	Now time.Time
	// Run is the present one.
	Run int
	// Budget is that of the project, as the intent knows it.
	Budget forge.Budget
	// OwnUSD is the budget that the intent has by itself; 0 if it has none.
	OwnUSD float64
	// SpentUSD is the cost of the intent in all its runs.
	SpentUSD float64
	// Recipe says that no step calls an agent.
	Recipe bool
	// ClaimTimeout is how long a replica may leave its own work unclaimed.
	ClaimTimeout time.Duration
	// Pause says what is held.
	Pause *pause.State
	// Obstacles are those that the intent knows of.
	Obstacles *obstacle.Known
	// Effects collects commands, timers, messages and cancellations.
	Effects *forge.Effects

	// Refused are the commands that there is no budget for, in order.
	Refused []Refusal
}

// Refusal is an attempt that there is no budget for.
type Refusal struct {
	Attempt forge.Attempt
	Why     string // for a person
}

// maxUnbilled bounds the withdrawn attempts whose costs are still to come.
const maxUnbilled = 64

// Send issues a command as soon as it is neither held nor waits for budget.
func (s *State) Send(x *Turn, c *forge.Command) {
	switch {
	case x.Pause.Holds(c.Attempt.Task):
		s.Held = append(s.Held, *c)
	case x.charged(c):
		s.enqueue(c)
		s.Reserve(x)
	default:
		s.Issue(x, c)
	}
}

// Issue issues a command now. If it is for one replica, a timer watches whether
// that one begins.
func (s *State) Issue(x *Turn, c *forge.Command) {
	if c.Replica != "" {
		s.Outbox.Arm(x.Effects, forge.Timer{To: x.Key, Key: ClaimKey(c.Attempt), At: x.Now.Add(x.ClaimTimeout)})
	}
	x.Obstacles.Restrict(c, x.Now)
	s.Outbox.Issue(x.Effects, c)
}

// Began gives a replica that was watched as long as an attempt may take.
func (s *State) Began(x *Turn, a forge.Attempt, timeout time.Duration) {
	s.Outbox.Arm(x.Effects, forge.Timer{To: x.Key, Key: ClaimKey(a), At: x.Now.Add(timeout)})
}

// Park repeats a step of a task, or of the whole intent, at a point in time.
func (s *State) Park(x *Turn, task forge.TaskID, step forge.Step, at time.Time) {
	s.Outbox.Arm(x.Effects, forge.Timer{To: x.Key, Key: ParkKey(task, step), At: at})
}

// Close forgets an attempt that has its result, and commits what it cost.
func (s *State) Close(x *Turn, a forge.Attempt, cost float64) {
	reserved := s.Outbox.Reserved(a) > 0
	s.Outbox.Close(a)
	s.Outbox.CancelTimer(ClaimKey(a))
	if reserved || cost > 0 {
		s.Commit(x)
		s.Reserve(x)
	}
}

// Withdraw tells a worker that the result of an attempt is not needed any more.
func (s *State) Withdraw(x *Turn, a forge.Attempt) {
	x.Effects.Cancels = append(x.Effects.Cancels, a)
	s.expectCosts(x, a)
	s.Outbox.Close(a)
	s.Outbox.CancelTimer(ClaimKey(a))
}

// WithdrawAll withdraws every attempt, and drops the commands that wait.
func (s *State) WithdrawAll(x *Turn) {
	open := s.Outbox.Attempts()
	x.Effects.Cancels = append(x.Effects.Cancels, open...)
	s.expectCosts(x, open...)
	s.Outbox.Commands, s.Outbox.Timers = nil, nil
	s.drop(func(forge.Attempt) bool { return true })
	s.Commit(x)
}

// WithdrawTask withdraws the attempts of a task, and drops its commands that wait.
func (s *State) WithdrawTask(x *Turn, task forge.TaskID) {
	for _, a := range s.Outbox.Attempts() {
		if a.Task == task {
			s.Withdraw(x, a)
		}
	}
	for _, step := range forge.Steps() {
		s.Outbox.CancelTimer(ParkKey(task, step))
	}
	s.drop(func(a forge.Attempt) bool { return a.Task == task })
	s.Commit(x)
	s.Reserve(x)
}

// WithdrawStep withdraws the attempts of a step that costs nothing.
func (s *State) WithdrawStep(x *Turn, step forge.Step) {
	s.Outbox.CancelTimer(ParkKey("", step))
	for _, a := range s.Outbox.Attempts() {
		if a.Step == step {
			s.Outbox.Close(a)
			x.Effects.Cancels = append(x.Effects.Cancels, a)
		}
	}
}

// Reclaim withdraws a command that one replica was to carry out, by the key of the
// timer that watched it, and returns it.
func (s *State) Reclaim(x *Turn, key string) (forge.Command, bool) {
	for i := range s.Outbox.Commands {
		if c := s.Outbox.Commands[i]; ClaimKey(c.Attempt) == key {
			s.Outbox.Close(c.Attempt)
			x.Effects.Cancels = append(x.Effects.Cancels, c.Attempt)
			s.expectCosts(x, c.Attempt)
			return c, true
		}
	}
	return forge.Command{}, false
}

// HoldBack withdraws the attempts that a pause holds, apart from steps of the whole intent if
// keep is set, and returns the attempts that were open and the steps that were
// parked. Their commands have to be sent again: then they are held.
func (s *State) HoldBack(x *Turn, keep bool) (open, parked []forge.Attempt) {
	stops := func(task forge.TaskID) bool { return x.Pause.Holds(task) && (!keep || task != "") }
	for _, a := range s.Outbox.Attempts() {
		if stops(a.Task) {
			s.Withdraw(x, a)
			open = append(open, a)
		}
	}
	for _, t := range slices.Clone(s.Outbox.Timers) {
		if a, ok := Parked(t.Key); ok && stops(a.Task) {
			s.Outbox.CancelTimer(t.Key)
			parked = append(parked, a)
		}
	}
	held := slices.Clip(s.Held)
	for i := range s.Waiting {
		if c := s.Waiting[i].Command; x.Pause.Holds(c.Attempt.Task) {
			c.BudgetUSD = 0
			held = append(held, c)
		}
	}
	s.dropWaiting(func(a forge.Attempt) bool { return x.Pause.Holds(a.Task) })
	s.Held = held
	return open, parked
}

// Resume sends the held commands. Those that are still paused are held again.
func (s *State) Resume(x *Turn) {
	list := s.Held
	s.Held = nil
	for i := range list {
		s.Send(x, &list[i])
	}
}

// HeldStep returns the held command of a step for changes, or nil.
func (s *State) HeldStep(task forge.TaskID, step forge.Step) *forge.Command {
	i := slices.IndexFunc(s.Held, func(c forge.Command) bool { return c.Attempt.Task == task && c.Attempt.Step == step })
	if i < 0 {
		return nil
	}
	s.Held = slices.Clone(s.Held)
	return &s.Held[i]
}

// DropHeld forgets the commands that are held.
func (s *State) DropHeld() { s.dropHeld(func(forge.Attempt) bool { return true }) }

// drop forgets commands that are not issued yet: held by a pause, or waiting
// for budget.
func (s *State) drop(which func(forge.Attempt) bool) {
	s.dropHeld(which)
	s.dropWaiting(which)
}

// dropHeld forgets commands that a pause holds.
func (s *State) dropHeld(which func(forge.Attempt) bool) {
	s.Held = slices.DeleteFunc(slices.Clone(s.Held), func(c forge.Command) bool { return which(c.Attempt) })
}

// ClaimKey returns the key of the timer that watches an attempt for one replica.
func ClaimKey(a forge.Attempt) string {
	return fmt.Sprintf("%s%s/%s/%d", claimPrefix, a.Task, a.Step, a.Number)
}

// The beginnings of the keys of timers.
const (
	ParkPrefix  = "park/"
	claimPrefix = "claim/"
)

// ParkKey returns the key of the timer that repeats a step.
func ParkKey(task forge.TaskID, step forge.Step) string {
	return ParkPrefix + string(task) + "/" + string(step)
}

// Parked returns the task and step that a timer repeats, unless it watches a
// replica.
func Parked(key string) (forge.Attempt, bool) {
	rest, ok := strings.CutPrefix(key, ParkPrefix)
	task, step, _ := strings.Cut(rest, "/")
	return forge.Attempt{Task: forge.TaskID(task), Step: forge.Step(step)}, ok
}
