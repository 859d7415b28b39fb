// Package whole has documents for programs that show an intent, or all of a
// project, just as the command line does beside the runner: the state that the
// rules have, and not the account of it that package document gives.
//
// The account is bounded, so that every reader can take it, and its names are kept for
// ever. Here everything is whole, and the names are those of package forge: fields
// come with new versions, and a reader passes over those that it does not know. So the
// account is for other systems, and this is for the command line by HTTP.
//
// A list has a page of intents, each as it was decided last, and the state of the project:
//
//	{"intents": [{"key": {"project": "shop", "intent": "a"}, "title": "...", "status": "done", ...}], "project": [...], "next": "..."}
//
// An intent has everything that is known of it:
//
//	{"view": {"summary": ..., "intent": ..., "tasks": [...], "reviews": [...], "history": [...], ...},
//	 "work": the account of package document, without its bounds,
//	 "attempts": [...], "records": ["<base64>", ...], "broken": "..."}
//
// All of it can be made of the journal of the intent, and is made of it anew for each reader. Why
// is it not made by the reader? Who folds a journal has to know every rule by which it was
// decided, and needs all of it, with what only auditors are told; and a reader of an older version
// could not read on at the first event that it does not know. Here it passes over a field.
//
// What auditors alone are told is not here: the accounts at a gateway, its references and
// signatures. Nor are the settings of the repository, which may hold a secret, and the commands
// to workers. A line that ran is here as its worker reported it, with what it printed.
package whole

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/plainjson"
)

// MaxBytes bounds an answer, in bytes of JSON.
const MaxBytes = 16 << 20

// most is how many intents a list has at most.
const most = 500

// Request asks for an intent, or without one for the list of all.
type Request struct {
	// Intent is the one that is asked for; empty for the list.
	Intent forge.IntentID `json:"intent,omitempty"`
	// After is, for the list, the id to go on after; it is Next of the answer before.
	After forge.IntentID `json:"after,omitempty"`
	// Records is, for an intent, how many of its records are known already and left out.
	Records int `json:"records,omitempty"`
}

// Check returns every mistake in a request.
func (r *Request) Check() (errs []forge.FieldError) {
	for field, id := range map[string]forge.IntentID{"intent": r.Intent, "after": r.After} {
		if id == "" {
			continue
		}
		if _, err := forge.ParseIntentID(string(id)); err != nil {
			errs = append(errs, forge.FieldError{Field: field, Reason: err.Error()})
		}
	}
	if r.Records < 0 {
		errs = append(errs, forge.FieldError{Field: "records", Reason: "is negative"})
	}
	return errs
}

// Of returns the intent that it is about; empty for the list.
func (r *Request) Of() forge.IntentID { return r.Intent }

// Answer has either of both.
type Answer struct {
	// Intent is the one that was asked for.
	Intent *Intent
	// List is the list, or a part of it.
	List *List
}

// Intent is everything that is known of an intent.
type Intent struct {
	// View is its state.
	View forge.View
	// Work is the account of it, without bounds.
	Work document.Work
	// Attempts are those that have ended, each as it counts for the rules.
	Attempts []forge.StepRecord
	// Records are those of its journal, the oldest first, in the binary format
	// of forge.v1.Record and as base64. Each has its events, with its summary,
	// and nothing that only auditors are told.
	Records []string
	// Broken says where the chain of its journal is broken; empty if it holds.
	Broken string
}

// List has the intents of a project by their ids.
type List struct {
	Intents []forge.Summary
	// Project is the state of the project: its merge queue, accounts, budgets
	// and schedules. It is empty before the first intent.
	Project []forge.Summary
	// Next is the value of After that continues the list; empty at its end.
	Next forge.IntentID
}

// JSON returns an answer with the names of package forge. Error: plainjson.ErrLong
// for one of more than MaxBytes, of which no more than that is written.
func (a Answer) JSON() ([]byte, error) {
	if a.Intent != nil {
		return plainjson.MarshalMost(*a.Intent, MaxBytes)
	}
	return plainjson.MarshalMost(*a.List, MaxBytes)
}

// ListOf returns a page of the summaries of a project, which are sorted by their ids.
func ListOf(all, project []forge.Summary, after forge.IntentID) List {
	l := List{Project: project}
	for i := range all {
		switch {
		case all[i].Key.Intent <= after:
		case len(l.Intents) == most:
			l.Next = l.Intents[most-1].Key.Intent
			return l
		default:
			l.Intents = append(l.Intents, all[i])
		}
	}
	return l
}

// Halve leaves out the second half of the intents of a list, so that it takes
// less room. It returns false for a list of one.
func (l *List) Halve() bool {
	n := len(l.Intents) / 2
	if n == 0 {
		return false
	}
	l.Intents, l.Next = l.Intents[:n], l.Intents[n-1].Key.Intent
	return true
}

// ParseIntent reads an intent that Answer has written, also of a newer version.
func ParseIntent(data []byte) (Intent, error) {
	var i Intent
	err := plainjson.Unmarshal(data, &i)
	return i, err
}

// ParseList reads a list that Answer has written, also of a newer version.
func ParseList(data []byte) (List, error) {
	var l List
	err := plainjson.Unmarshal(data, &l)
	return l, err
}
