package mergequeue

import (
	"slices"
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

// stands notes where a pull request stands while it waits for others, and reports
// whether a timer has to be set for that. Elsewhere than there nothing is due.
func (p *Pull) stands(at pull.Standing, now time.Time) bool {
	if p.At == at {
		return false
	}
	p.At, p.DueAt, p.Overdue = at, time.Time{}, false
	// One that is behind waits for its turn, and not for people.
	if at == "" || at == pull.Behind {
		return false
	}
	p.DueAt = now.Add(overdueAfter)
	return true
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
	at := p.standing()
	if at == pull.Ready && q.Change.Pull.By == byForge && p.Errors == 0 { // it is merged next, or when a file lock is given back
		at = ""
	}
	set = by.Has(rules.OverduePulls) && p.stands(at, now)
	why := forge.MergeOutcome("")
	if p.Overdue {
		why, result.Refusal = forge.MergeOverdue, p.Words(p.Change.Pull, p.Seen)
	}
	s.hold(out, q, why, result)
	return set
}
