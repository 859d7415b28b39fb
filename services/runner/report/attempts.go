package report

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// Attempts returns the attempts of an intent without their claims, the oldest first: those that
// have ended, each at its newest place, and those that are issued and have not. A number that
// was used again, for a retry of the project's steps, is one attempt: what it left has one
// name.
func Attempts(key forge.Key, records []forge.Record) (ended, open []forge.Attempt) {
	r := reader{products: map[forge.TaskID]*document.Product{}, intent: flow.NewIntent(key)}
	r.fold(records)
	view := r.intent.View()
	work := r.of(&view)
	for i := range work.Steps {
		s := &work.Steps[i]
		a := forge.Attempt{Task: s.Task, Step: s.Step, Number: s.Attempt}
		ended = append(slices.DeleteFunc(ended, func(b forge.Attempt) bool { return a == b }), a)
	}
	for _, a := range r.intent.Dispatch.Outbox.Attempts() {
		a.Claim = 0
		open = append(open, a)
	}
	ended = slices.DeleteFunc(ended, func(a forge.Attempt) bool { return slices.Contains(open, a) })
	return ended, open
}
