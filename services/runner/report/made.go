package report

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// Made is an attempt that ended with a change, as its result says. Only what the journal has of
// it is here: the change itself is stored elsewhere by a worker, and compared with this before
// it is shown.
type Made struct {
	// Attempt has no claim.
	Attempt forge.Attempt
	// Base and Head are the commits between which the change is, PatchID identifies it; empty
	// in journals of former versions.
	Base, Head, PatchID string
}

// Changes returns the state of an intent, and the attempts that counted and changed something,
// in their order. An attempt that was given up, and whose result came late, is none of them.
func Changes(key forge.Key, records []forge.Record) (forge.View, []Made) {
	r := reader{intent: flow.NewIntent(key), products: map[forge.TaskID]*document.Product{}}
	r.fold(records)
	return r.intent.View(), r.made
}

// change takes the change of an attempt, unless there is none. Which claim made it does not
// matter to readers: an attempt has one change that counts.
func (r *reader) change(a forge.Attempt, base, head, id string) {
	if head == "" || head == base {
		return
	}
	a.Claim = 0
	r.made = append(r.made, Made{a, base, head, id})
}

// fold applies the records, and looks at each of their events before.
func (r *reader) fold(records []forge.Record) {
	for i := range records {
		by := rules.Of(&records[i])
		for j := range records[i].Events {
			ev := &records[i].Events[j]
			r.before(ev)
			r.intent.Step(by, *ev)
		}
	}
}
