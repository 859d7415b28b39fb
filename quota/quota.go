// Package quota bounds how many intents may be open at once: in a project, and
// of a system that submits them. A runner asks before it decides on a
// submission, so a refused one leaves nothing behind, and may come again.
//
// The count has two parts. What the journals showed at the last look is the truth
// of that moment, of whatever runner. What this one let in since is added, and
// forgotten as soon as a look shows its journal, so that nothing is counted twice
// and nothing is missed that this runner knows of. What other runners let in since
// the last look is missing: the nearer a quota is, the more often a runner looks.
package quota

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// The fields of refusals, which name the quota.
const (
	OfProject = "quota.project"
	OfSystem  = "quota.system"
)

// TryAgainAfter tells a refused sender how long to wait: intents end in minutes, not in seconds.
const TryAgainAfter = time.Minute

// Limits has the quotas. The zero value has the defaults, which no single machine comes near.
type Limits struct {
	// Project bounds the open intents of a project; 0 means 10,000.
	Project int
	// System bounds those that one system has submitted, in all projects; 0 means 5,000.
	System int
	// Calls bounds the commands of a project's intents that workers may take or
	// have taken; 0: they are not bounded.
	Calls int
}

// The defaults of Limits.
const (
	DefaultProject = 10_000
	DefaultSystem  = 5_000
)

// Exceeded reports whether a ruling refuses a submission for a quota alone: the
// same one may be accepted later.
func Exceeded(r forge.Ruling) bool {
	return r.Decision == forge.Refused && (r.Field == OfProject || r.Field == OfSystem)
}

// Holder is an open intent, as far as quotas count it.
type Holder struct {
	Key forge.Key
	// System is the one that submitted it; empty: a person did, or the intent comes from within.
	System string
}

// blind is the part of a quota that a runner may give away without looking at
// what others have accepted meanwhile: an eighth, so that looking costs nothing
// where few intents are open. One runner keeps to a quota exactly; each other
// one may add an eighth of it, because it last looked when less was open.
const blind = 8

// Book counts open intents: those of the last look at the journals, and those
// that were let in since. It is used by one goroutine at a time.
type Book struct {
	limits Limits
	looked bool
	// entered are those that were let in and that no look has shown yet.
	entered map[forge.Key]Holder
	// counts has those of the last look, and those that entered since.
	counts count
}

// count has the open intents by project and by system.
type count struct {
	projects map[forge.ProjectID]int
	systems  map[string]int
}

func newCount() count { return count{map[forge.ProjectID]int{}, map[string]int{}} }

// add counts an intent n times, also minus one time: what one machine let in
// may turn out to be refused by the rules.
func (c count) add(h Holder, n int) {
	c.projects[h.Key.Project] += n
	if h.System != "" {
		c.systems[h.System] += n
	}
}

// NewBook returns a Book that has not looked yet.
func NewBook(l Limits) *Book {
	if l.Project == 0 {
		l.Project = DefaultProject
	}
	if l.System == 0 {
		l.System = DefaultSystem
	}
	return &Book{limits: l, entered: map[forge.Key]Holder{}, counts: newCount()}
}

// MustLook reports whether the journals have to be looked at before an intent may enter.
func (b *Book) MustLook(h Holder) bool {
	return !b.looked || (b.counts.projects[h.Key.Project]+1)*blind > b.limits.Project ||
		h.System != "" && (b.counts.systems[h.System]+1)*blind > b.limits.System
}

// Look counts anew, by the intents that the journals show as open. Of those that
// entered it forgets the ones whose journals are there: they are open, or have ended.
func (b *Book) Look(open []Holder, there func(forge.Key) bool) {
	b.looked, b.counts = true, newCount()
	for _, h := range open {
		b.counts.add(h, 1)
	}
	for key, h := range b.entered {
		if there(key) {
			delete(b.entered, key)
		} else {
			b.counts.add(h, 1)
		}
	}
}

// Enter lets an intent in, or returns the field of the quota that has no room for
// it, and why in words. It says whether the intent is a new one, which may Leave.
func (b *Book) Enter(h Holder) (entered bool, full *forge.FieldError) {
	over := func(field, who string, limit int) *forge.FieldError {
		return &forge.FieldError{Field: field, Reason: fmt.Sprintf("%s has %d open intents, as many as it may; try again after %s, or when one of them has ended",
			who, limit, strings.TrimSuffix(TryAgainAfter.String(), "0s"))}
	}
	if _, known := b.entered[h.Key]; known {
		return false, nil
	}
	switch {
	case b.counts.projects[h.Key.Project] >= b.limits.Project:
		return false, over(OfProject, "project "+string(h.Key.Project), b.limits.Project)
	case h.System != "" && b.counts.systems[h.System] >= b.limits.System:
		return false, over(OfSystem, "system "+h.System, b.limits.System)
	}
	b.entered[h.Key] = h
	b.counts.add(h, 1)
	return true, nil
}

// Leave takes back that an intent entered, because it was not accepted, or may not have been.
func (b *Book) Leave(h Holder) {
	if kept, known := b.entered[h.Key]; known {
		delete(b.entered, h.Key)
		b.counts.add(kept, -1)
	}
}
