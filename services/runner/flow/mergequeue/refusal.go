package mergequeue

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// An origin that refuses a push says by a hook, or by the protection of the
// branch, what it has against it. Whether that is the change or every push, only
// other pushes show. So a refused change goes back to its place in the queue,
// one other is tried at once, and while both are refused the queue waits:
//
//	                  refused                     refused, or there is no other
//	accepts ----------------------> second opinion ------------------------------> waits
//	   ^                              ^                                             |
//	   |  any push is accepted        +---- the oldest is refused again <-----------+ the time has come: a round begins
//	   +--------------------------------------------------------------------------- with the oldest
//
// Each round begins with the oldest, so that the order stays when the origin accepts pushes
// again, and its second opinion is of the one that was asked for least. A refusal is the
// change's own only if another change was accepted since it was refused before. So no outage of
// an origin fails a change, and one change that a hook has something against holds no other up.
const (
	// firstRest is how long the queue waits before the second round. Each next
	// rest is twice as long.
	firstRest = 15 * time.Second
	// longestRest bounds that.
	longestRest = 10 * time.Minute
	// refusalTimer is the key of the timer that ends a rest.
	refusalTimer = "push"
)

// Refusal is that the origin refuses pushes to the base branch.
type Refusal struct {
	// Words are the origin's, as it first had the queue wait. Later ones are not
	// kept: a hook may print the time, and every intent would be told of that.
	Words string
	// Since is when it refused the first one, which is before the queue waited.
	Since time.Time
	// Last is the change that it refused last.
	Last Ref
	// Second says that the round goes on with another change than Last. It stays while that
	// one is kept up by something else, such as a conflict: then the next one is asked.
	Second bool
	// Rests counts the rounds that ended with a refusal.
	Rests int
	// NextAt is when the next round begins; zero during one.
	NextAt time.Time
}

// rests reports whether the queue waits for the next round.
func (f *Refusal) rests() bool { return f != nil && !f.NextAt.IsZero() }

// Stands reports whether pushes are refused as far as one knows: a single one
// says nothing yet while another is tried.
func (f *Refusal) Stands() bool { return f != nil && f.Rests > 0 }

// refused gives a change whose push was refused its place in the queue back, and reports whether
// it did: not if the refusal is the change's own, or if the change is not wanted any more.
func (s *State) refused(m *Merge, r *forge.Result, now time.Time) bool {
	if !(turns{s}).isWanted(m) || m.Doubted && s.Refused == nil {
		return false
	}
	q, in := turns{s}.putBack(), forge.As[*forge.MergeResult](r.Output)
	q.Refusals++
	q.Doubted = false
	if in.Candidate != nil {
		q.Verified, q.VerifiedIn = in.Candidate, r.Executor
	}
	if s.Refused == nil {
		s.Refused = &Refusal{Since: now}
	}
	f := s.Refused
	f.Last = q.ref()
	if f.Second = !f.Second && s.other() >= 0; f.Second {
		return true
	}
	if !f.Stands() {
		f.Words = in.Refusal
	}
	f.NextAt = now.Add(min(firstRest<<min(f.Rests, 10), longestRest))
	f.Rests++
	return true
}

// accepted notes that the origin took a push. What it refused before is tried once more, as
// the first in the queue, and not failed at once: it may have been refused when all were.
func (s *State) accepted() {
	s.Refused = nil
	for _, q := range s.Queued {
		q.Doubted = q.Doubted || q.Refusals > 0
		q.Refusals = 0
	}
}

// other returns the index of the change for a second opinion; -1 if there is none.
func (s *State) other() int {
	best := -1
	for i, q := range s.Queued {
		if q.ref() != s.Refused.Last && s.mayMerge(q) && (best < 0 || q.Refusals < s.Queued[best].Refusals) {
			best = i
		}
	}
	return best
}

// next returns the index of the change to merge next; -1 if none may be.
func (s *State) next() int {
	if i := slices.IndexFunc(s.Queued, func(q *Request) bool { return q.Proving != nil }); i >= 0 {
		return i // it is on the base branch already
	}
	if i := slices.IndexFunc(s.Queued, func(q *Request) bool { return q.Press && s.mayMerge(q) }); i >= 0 {
		return i // that takes a moment
	}
	if f := s.Refused; f != nil && f.Second {
		if i := s.other(); i >= 0 {
			return i
		}
	}
	first := slices.IndexFunc(s.Queued, s.mayMerge)
	if i := (turns{s}).instead(first); i >= 0 {
		return i
	}
	return first
}

// NextRound begins the next round because its timer fired, and reports whether it does.
func (s *State) NextRound(fired *forge.TimerFired) bool {
	if !s.Refused.rests() || fired.Key != refusalTimer || !s.Refused.NextAt.Equal(fired.At) {
		return false
	}
	s.Refused.NextAt = time.Time{}
	return true
}

// Reopen forgets the refusals, because a person says that pushes are accepted.
// Whether they are is found out as at first. That another change was accepted
// since a refusal (Doubted) is a fact, and stays.
func (s *State) Reopen() {
	s.Refused = nil
	for _, q := range s.Queued {
		q.Refusals = 0
	}
}

// Closed returns the refusal as a project keeps what is closed; nil if pushes
// are accepted as far as one knows.
func (s *State) Closed() *forge.Obstacle {
	f := s.Refused
	if !f.Stands() {
		return nil
	}
	return &forge.Obstacle{Agent: forge.GitPush, Reason: forge.FailPush, Message: f.Words, Since: f.Since}
}

// Timers returns those that are set: of a merge that is tried again, and of the
// next round of pushes.
func (s *State) Timers(project forge.Key) (list []forge.Timer) {
	if m := s.Current; m != nil && !m.RetryAt.IsZero() {
		list = append(list, forge.Timer{To: project, Key: m.TimerKey(), At: m.RetryAt})
	}
	if s.Refused.rests() {
		list = append(list, forge.Timer{To: project, Key: refusalTimer, At: s.Refused.NextAt})
	}
	return append(list, Pulls{s}.timers(project)...)
}

// First returns the intent of the oldest change that is not merged; empty if there is none.
func (s *State) First() forge.IntentID {
	var first *Request
	if s.Current != nil {
		first = &s.Current.Request
	}
	if len(s.Queued) > 0 && (first == nil || s.Queued[0].Order < first.Order) {
		first = s.Queued[0]
	}
	if first == nil {
		return ""
	}
	return first.Intent
}
