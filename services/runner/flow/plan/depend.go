package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Dependency is another intent that has to be done before the tasks begin.
type Dependency struct {
	// ID is the intent that is waited for.
	ID forge.IntentID
	// Status is how it ended; empty: it is not known.
	Status forge.Status
	// Absent: there was no such intent when the project was asked.
	Absent bool
}

// Dependencies are the intents that one depends on.
type Dependencies []Dependency

// DependOn returns the dependencies on intents, each once.
func DependOn(ids []forge.IntentID) Dependencies {
	var list Dependencies
	for _, id := range ids {
		if !slices.ContainsFunc(list, func(d Dependency) bool { return d.ID == id }) {
			list = append(list, Dependency{ID: id})
		}
	}
	return list
}

// Ask returns the intents that are not known to be done, and forgets how they
// ended: the project is asked again.
func (l Dependencies) Ask() []forge.IntentID {
	var ids []forge.IntentID
	for i := range l {
		if l[i].Status != forge.StatusDone {
			l[i].Status, l[i].Absent = "", false
			ids = append(ids, l[i].ID)
		}
	}
	return ids
}

// Open returns the intents that are not done.
func (l Dependencies) Open() []forge.IntentID {
	var ids []forge.IntentID
	for _, d := range l {
		if d.Status != forge.StatusDone {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// WaitsFor reports whether it is not known how an intent of these ended.
func (l Dependencies) WaitsFor(id forge.IntentID) bool {
	return slices.ContainsFunc(l, func(d Dependency) bool { return d.ID == id && d.Status == "" })
}

// Ended takes how an intent that is waited for ended. It returns the rule that
// ends the run because of that, and why; an empty rule if the run goes on. One
// that does not exist blocks the run until it is there and done: systems that
// submit several intents are not told in which order they are decided on.
func (l Dependencies) Ended(by rules.Version, d *forge.DependencyEnded) (name, why string) {
	i := slices.IndexFunc(l, func(x Dependency) bool { return x.ID == d.Intent })
	switch {
	case len(d.Cycle) > 0:
		return rule.Cycle, "the intents wait for each other: " + JoinIDs(d.Cycle, " -> ")
	case d.Status == "":
		l[i].Absent = by.Has(rules.AbsentDependency)
		return rule.BlockDependency, fmt.Sprintf("it depends on %q, which does not exist", d.Intent)
	case d.Status != forge.StatusDone:
		l[i].Status = d.Status
		return rule.BlockDependency, fmt.Sprintf("it depends on %q, which ended %s", d.Intent, d.Status)
	}
	l[i].Status = d.Status
	return "", ""
}

// Freed takes that an intent that failed, or was not there, got done after all,
// and reports whether nothing blocks the run any more: it does not while
// another one is known to have failed, or if this one never blocked it.
func (l Dependencies) Freed(d *forge.DependencyEnded) bool {
	failed := func(x Dependency) bool { return x.Absent || x.Status != "" && x.Status != forge.StatusDone }
	i := slices.IndexFunc(l, func(x Dependency) bool { return x.ID == d.Intent && failed(x) })
	if i < 0 || d.Status != forge.StatusDone || len(d.Cycle) > 0 {
		return false
	}
	l[i].Status, l[i].Absent = d.Status, false
	return !slices.ContainsFunc(l, failed)
}

// JoinIDs lists ids in one line.
func JoinIDs(ids []forge.IntentID, sep string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return strings.Join(list, sep)
}
