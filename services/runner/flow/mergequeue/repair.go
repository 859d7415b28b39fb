package mergequeue

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// maxUnproven bounds the merges that one intent to repair the base branch
// names. All of them are in what it verifies.
const maxUnproven = 20

// Repairs are the intents that verify the base branch after a forge merged a
// commit that was not verified on its parent, because a person pressed its
// button. The base branch may fail now, and every later change with it.
//
// There is one at a time, which looks at everything that was merged before it. Its own merge
// asks for none: on a base branch that moves all the time each would follow another, and none
// would be the last. A base branch that fails in spite of that is found by the next change.
type Repairs struct {
	// Newest is the intent that was submitted last, and Over says that it has ended.
	Newest forge.IntentID `json:"newest,omitzero"`
	Over   bool           `json:"over,omitzero"`
	// Since are the merges since it was submitted, the oldest first.
	Since []Unproven `json:"since,omitzero"`
}

// Unproven is a merge that was not proved.
type Unproven struct {
	Task   forge.TaskID `json:"task"`
	Commit string       `json:"commit"`
	// Why says it to people.
	Why string `json:"why"`
}

// Merged returns the intent to submit after a merge; nil if it was proved, if the
// intent before has not ended, or if what was merged is of that one, or a part of it,
// which asks for none. isPart reports whether one intent is another, or a part of it.
func (s *Repairs) Merged(by rules.Version, r *forge.Result, isPart func(id, of forge.IntentID) bool, now time.Time) *forge.Intent {
	in, project := forge.As[*forge.MergeResult](r.Output), r.To.Project
	if in.Unproven == "" {
		return nil
	}
	m := Unproven{Task: r.Attempt.Task, Commit: oneLine(in.Commit), Why: oneLine(in.Unproven)}
	switch {
	case !by.Has(rules.OneRepair):
		return Repair([]Unproven{m}, project, now)
	case isPart(r.To.Intent, s.Newest):
		return nil
	case s.Newest != "" && !s.Over:
		s.Since = rule.Last(append(slices.Clip(s.Since), m), maxUnproven)
		return nil
	}
	return s.submit([]Unproven{m}, project, now)
}

// oneLine returns the words of a worker so that an intent can have them. One
// that is refused would never end, and the next would wait for that.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(rule.FirstLine(text), ""))
}

// Ended returns the intent to submit after another one ended; nil if it is not
// the newest one, or nothing was merged since that was submitted.
func (s *Repairs) Ended(id forge.IntentID, project forge.ProjectID, now time.Time) *forge.Intent {
	if id != s.Newest {
		return nil
	}
	list := s.Since
	if s.Over, s.Since = true, nil; len(list) == 0 {
		return nil
	}
	return s.submit(list, project, now)
}

// submit opens an intent.
func (s *Repairs) submit(list []Unproven, project forge.ProjectID, now time.Time) *forge.Intent {
	in := Repair(list, project, now)
	s.Newest, s.Over = in.ID, false
	return in
}

// Repair returns the intent to look at the base branch after these merges, at
// least one. It is the same for the same newest merge.
func Repair(list []Unproven, project forge.ProjectID, now time.Time) *forge.Intent {
	newest := list[len(list)-1]
	id := forge.NewDerivedID("verify-"+string(newest.Task), string(project), "repair", newest.Commit)
	title := fmt.Sprintf("Verify what was merged for %s", newest.Task)
	if n := len(list) - 1; n > 0 {
		title += fmt.Sprintf(" and before it (%d)", n)
	}
	var body strings.Builder
	for _, m := range list {
		fmt.Fprintf(&body, "The pull request of task %s was merged at the forge as commit %s, which is not what was verified and reviewed: %s.\n\n",
			m.Task, m.Commit, m.Why)
	}
	which := "that commit"
	if len(list) > 1 {
		which = "one of those commits"
	}
	fmt.Fprintf(&body, "Run the project's verify commands on the base branch. If they pass, there is nothing to do. If they fail because of %s, "+
		"repair it; if that is not possible by a small change, revert it.", which)
	return &forge.Intent{
		ID: id, Project: project, CreatedAt: now, Source: forge.SourceReflection,
		Settings: forge.Settings{Title: title, Body: body.String(), Type: "fix"},
		Origin:   forge.Origin{System: string(forge.SourceReflection), EventID: string(id)},
	}
}
