// Package loss says in which way a repository's store has less than its files show.
//
// Package local calls it before anything is decided in a repository, and recover and status show
// its result. Each file in .forge names the message of the journal that it follows from; a store
// that ends before that has lost messages, and deciding on would do things twice. It only reads.
package loss

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Intent is one of which the store has less than its files show: a part of the store is
// gone, such as what a machine had not written yet when its power failed, or all of it.
type Intent struct {
	ID forge.IntentID `json:"intent" yaml:"intent"`
	// Shown and Stored are the journal sequences that the files show and that
	// the store has; Stored is 0 if it has nothing of the intent.
	Shown  uint64 `json:"shown"  yaml:"shown"`
	Stored uint64 `json:"stored" yaml:"stored"`
}

// Error is returned where something would be decided although the store has lost
// something: it would be done twice, or forgotten, or waited for without an end.
type Error struct {
	// Lost are the intents of which the store has less than the files show, sorted.
	Lost []Intent
	// Others are the projects that the store has, if it has nothing of this one.
	Others []forge.ProjectID
	// Damage says what is wrong with the journal of the project, without which no intent goes on.
	Damage string
}

// maxNamed bounds the intents that an error names.
const maxNamed = 3

// What says what is lost.
func (e *Error) What() string {
	if len(e.Lost) == 0 {
		return "the store is damaged: " + e.Damage
	}
	var names []string
	for _, l := range e.Lost[:min(len(e.Lost), maxNamed)] {
		names = append(names, string(l.ID))
	}
	what := "the store has lost what .forge shows of " + strings.Join(names, ", ")
	if more := len(e.Lost) - len(names); more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	if len(e.Others) > 0 {
		what += fmt.Sprintf(": it is that of project %s", e.Others[0])
	}
	return what
}

// Remedy says what a person can do.
func (e *Error) Remedy() string {
	if len(e.Others) > 0 {
		return "if this folder was renamed, rename it back; otherwise move .forge/nats away, and put a backup in place with " +
			"pfl-forge restore, or see pfl-forge recover --dry-run"
	}
	return "put a backup in place with pfl-forge restore, or see pfl-forge recover --dry-run"
}

// Error says what is lost, and what to do.
func (e *Error) Error() string { return e.What() + ", so nothing is decided: " + e.Remedy() }

// Of returns the intents of which less is stored than shown, sorted.
func Of(shown, stored map[forge.IntentID]uint64) (list []Intent) {
	for id, seq := range shown {
		if stored[id] < seq {
			list = append(list, Intent{id, seq, stored[id]})
		}
	}
	slices.SortFunc(list, func(a, b Intent) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list
}
