package mergequeue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// overdueAfter is for how long a pull request waits for others before a person is
// told: a check that never comes, and an approval that is missing,
// are seen by no one else.
const overdueAfter = 24 * time.Hour

// checksAfter is for how long checks are waited for before that, where the
// policy does not say.
const checksAfter = 2 * time.Hour

// stands notes where a pull request stands while it waits for others, and reports
// whether a timer has to be set for that. Elsewhere than there nothing is due.
func (p *Pull) stands(at pull.Status, now time.Time) bool {
	if p.At == at {
		return false
	}
	p.At, p.Since, p.DueAt, p.Overdue, p.Late = at, now, time.Time{}, false, nil
	// One that is behind waits for its turn, and not for people.
	if at == "" || at == pull.Behind {
		return false
	}
	p.DueAt = now.Add(overdueAfter)
	return true
}

// awaits notes which checks have not ended, and reports whether a timer has to be
// set. The time counts as long as one of those that were waited for at first
// has not ended: where another one follows, that one has its own.
func (p *Pull) awaits(late []string, now time.Time) bool {
	still := slices.DeleteFunc(slices.Clone(p.Late), func(name string) bool { return !slices.Contains(late, name) })
	if p.At == pull.Pending && len(still) > 0 {
		p.Late = still
		return false
	}
	p.At, p.Since, p.DueAt, p.Overdue = pull.Pending, now, now.Add(p.checksWait()), false
	p.Late = late[:min(len(late), maxLate)]
	return true
}

// checksWait returns for how long checks are waited for before a person is told.
func (p *Pull) checksWait() time.Duration { return cmp.Or(p.Change.Pull.ChecksWait, checksAfter) }

const (
	// maxLate bounds the checks that are remembered, and maxNamed those that a
	// person is told of.
	maxLate  = 50
	maxNamed = 3
)

// lateWords says which checks are waited for.
func (p *Pull) lateWords() string {
	names, word := strings.Join(p.Late[:min(len(p.Late), maxNamed)], ", "), "check"
	if len(p.Late) > 1 {
		word = "checks"
	}
	if more := len(p.Late) - maxNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("waits for %s %s of %s since %s", word, names, pull.Name(p.Seen), p.sinceWords())
}

// noneWords says, for a person, that the forge reports no checks, which are waited for.
func (p *Pull) noneWords() string {
	return fmt.Sprintf("no checks are reported at the forge for %s since %s, and with merge.by: forge one at least has to pass: "+
		"merge it there and say merge.by: people in pfl-forge.yaml, or set up checks of pull requests", pull.Name(p.Seen), p.sinceWords())
}

// waitWords says, for a person, what it waits for.
func (p *Pull) waitWords() string {
	switch words := p.Words(p.Change.Pull, p.Seen); {
	case !p.lacksChecks(p.status()):
		return words
	case p.Change.Pull.By == byForge:
		return words + ", of which the forge reports none"
	}
	return "waits to be merged, and the forge reports no checks"
}

// sinceWords says since when it stands where it does.
func (p *Pull) sinceWords() string { return p.Since.UTC().Format("2 Jan 15:04 UTC") }

// lacksChecks reports whether a pull request waits for checks of which the forge reports none.
func (p *Pull) lacksChecks(at pull.Status) bool {
	return at == pull.Pending && pull.AreMissing(p.Change.Pull, p.Seen)
}

// dueKey returns the key of the timer that fires at DueAt.
func dueKey(t forge.TaskID) string { return "pull-due/" + string(t) }

// due returns that timer. It is for the project's machine, as all timers of its queue are.
func (p *Pull) due(t forge.TaskID, project forge.Key) forge.Timer {
	return forge.Timer{To: project, Key: dueKey(t), At: p.DueAt}
}

// atForge returns the requests that wait at the forge, or for it to merge.
func (s Pulls) atForge() []*Request {
	list := slices.Clone(s.Proposed)
	for _, q := range s.Queued {
		if q.Press {
			list = append(list, q)
		}
	}
	if s.Current != nil && s.Current.Press {
		list = append(list, &s.Current.Request)
	}
	return list
}

// fallsDue takes that a timer fired, and reports whether a pull request has waited
// too long because of that. That alone says so, and not the time of any other
// event: one that is ignored must not change anything.
func (s Pulls) fallsDue(fired *forge.TimerFired) bool {
	for _, q := range s.atForge() {
		p := s.of(q)
		if p.DueAt.IsZero() || dueKey(q.Task) != fired.Key || !p.DueAt.Equal(fired.At) {
			continue
		}
		p.DueAt, p.Overdue = time.Time{}, true
		return true
	}
	return false
}

// waits tells the task of a pull request that waits for others what a person has
// to know of that: that the forge refuses what it was asked for, or that this
// takes long. It reports whether a timer has to be set.
func (s Pulls) waits(out *outbox.Messages, by rules.Version, q *Request, result *forge.MergeResult, now time.Time) (set bool) {
	p := s.of(q)
	if p.Denied != "" {
		p.stands("", now)
		result.Refusal = p.Denied
		s.hold(out, q, forge.MergeDenied, result)
		return false
	}
	at := p.status()
	if at == pull.Ready && q.Change.Pull.By == byForge && p.Errors == 0 { // it is merged next, or when a file lock is given back
		at = ""
	}
	late := []string(nil)
	if at == pull.Pending && by.Has(rules.LateChecks) {
		late = pull.Late(p.Change.Pull, p.Seen)
	}
	counts := by.Has(rules.NoChecks)
	none := counts && q.Change.Pull.By == byForge && p.lacksChecks(at)
	if len(late) > 0 {
		set = p.awaits(late, now)
	} else {
		if len(p.Late) > 0 { // they have ended, or are not shown any more
			p.At = ""
		}
		if set = by.Has(rules.OverduePulls) && p.stands(at, now); set && none {
			p.DueAt = now.Add(p.checksWait())
		}
	}
	why := p.overdue(late, none, counts, result)
	if len(late) > 0 && p.Held == why && p.Announced != result.Refusal { // another one of them came: the rest is waited for still
		p.Held = ""
	}
	p.Announced = result.Refusal
	s.hold(out, q, why, result)
	return set
}

// overdue writes into a result what a person has to know of a pull request that waits for too
// long, and returns MergeOverdue; "" before that. late names the checks that have not ended,
// and none says that the forge reports no check; counts says that the rules know of that.
func (p *Pull) overdue(late []string, none, counts bool, result *forge.MergeResult) forge.MergeOutcome {
	switch {
	case !p.Overdue:
		return ""
	case len(late) > 0:
		result.Refusal = p.lateWords()
		for _, name := range p.Late[:min(len(p.Late), maxNamed)] {
			result.Pull.Checks = append(result.Pull.Checks, forge.PullCheck{Name: name, State: forge.PullCheckPending})
		}
	case none: // one without a name stands for whichever comes
		result.Refusal, result.Pull.Checks = p.noneWords(), []forge.PullCheck{{State: forge.PullCheckPending}}
	case counts:
		result.Refusal = p.waitWords()
	default:
		result.Refusal = p.Words(p.Change.Pull, p.Seen)
	}
	return forge.MergeOverdue
}
