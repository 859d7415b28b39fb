// Package others says who may take a decision besides the person who looks at it, by the file of
// tokens and the project's policy. It is pure: it knows neither HTML nor the API, and has no clock.
//
// # Who is told
//
// A name and its roles say whom to deceive, so the file's people are shown to
// auditors and operators alone. Here is one exception, and no more of it than
// it takes: whoever has a decision before them is told the names of the people
// who have the same one, so that they can be asked, or left to it. Who decides
// by other ways than the gateway, as by the command line, is not in its file.
package others

import (
	"fmt"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Decision is one that a person has before them.
type Decision struct {
	Project forge.ProjectID
	// Verb is that by which it is taken.
	Verb tokens.Verb
	// Approvers are the only ones whose approval counts; empty: everybody's does.
	Approvers []string
	// Without are people who are not told: the one who looks, and those who may
	// not, or have decided already.
	Without []string
}

// Verb returns the verb that ends a wait.
func Verb(w forge.Waiting) tokens.Verb {
	switch w {
	case forge.WaitingApproval:
		return tokens.Approve
	case forge.WaitingClarification:
		return tokens.Answer
	case forge.WaitingPaused:
		return tokens.Resume
	case forge.WaitingFailed, forge.WaitingDirty, forge.WaitingBase, forge.WaitingBudget, forge.WaitingPull:
	}
	return tokens.Retry
}

// Of returns the people of a file of tokens who may take a decision at a time,
// each once, by their names. Names are the same without regard to case, as
// where the rules compare people; whose approval counts is as it is written.
func Of(entries []tokens.Token, d Decision, now time.Time) (names []string) {
	for i := range entries {
		t := &entries[i]
		name, person := t.Holder()
		same := func(other string) bool { return strings.EqualFold(name, other) }
		switch {
		case !person, !t.May(d.Project, d.Verb), !t.Expires.IsZero() && !now.Before(t.Expires):
		case slices.ContainsFunc(d.Without, same), slices.ContainsFunc(names, same):
		case d.Verb == tokens.Approve && len(d.Approvers) > 0 && !slices.Contains(d.Approvers, name):
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// most is how many names are told.
const most = 8

// Words returns names as a sentence has them.
func Words(names []string) string {
	switch extra := len(names) - most; {
	case len(names) == 0:
		return "nobody else in this gateway's file of tokens"
	case extra > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), extra)
	}
	return strings.Join(names, ", ")
}
