// Package whole has projects that merge each intent as one change, in some worlds of
// the simulator, and knows what holds there without the rules: everything of an intent
// is about one task, so that there is one branch, and one pull request at most.
//
// The simulator gives every record to Intents.Check. Which worlds have such a project follows
// from their seed alone, so that a new kind of world does not change those that exist.
package whole

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// Intents are those of such a project. Nil ones are of a world whose tasks are
// merged by themselves.
type Intents struct {
	// tasks has the one task of each intent that was issued a command.
	tasks map[forge.IntentID]forge.TaskID
}

// New returns the intents of a world: nil in most. Some of the others merge by
// pull requests, one of them by a forge's queue. It takes nothing from a
// world's chances, so that agents plan several tasks as often as elsewhere.
func New(seed uint64) *Intents {
	if !slices.Contains([]uint64{20, 23, 45, 115, 148, 151, 173, 227}, seed%256) {
		return nil
	}
	return &Intents{tasks: map[forge.IntentID]forge.TaskID{}}
}

// Check returns an error if a decision has an intent of two tasks, or a command about
// another one than before. The commands of a project are about the tasks of its intents.
func (w *Intents) Check(rec *forge.Record) error {
	if w == nil {
		return nil
	}
	if n := len(rec.Summary.Tasks); n > 1 {
		return fmt.Errorf("%s is to be merged as one change, and has %d tasks", rec.Summary.Key, n)
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		id := c.To.Intent
		if c.Attempt.Task == "" {
			continue
		}
		if w.tasks[id] == "" {
			w.tasks[id] = c.Attempt.Task
		}
		if w.tasks[id] != c.Attempt.Task {
			return fmt.Errorf("%s is to be merged as one change, and %s follows one of %s", id, c.Attempt, w.tasks[id])
		}
	}
	return nil
}
