package mergequeue

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
)

// Advance has everything follow from what was last seen of the pull requests. It
// has to be called after every step, before StartNext. It returns the requests
// whose pull requests are to be opened, and the timers to set.
func (s Pulls) Advance(out *outbox.Messages, by rules.Version, project forge.Key, now time.Time) (open []*Request, set []forge.Timer) {
	// What waits to be merged by the forge may be merged only as long as it may
	// be, and what waits to be put on the tip may have to wait for another one
	// that goes first: both are asked anew.
	for _, q := range slices.Clone(s.Queued) {
		if q.Proving == nil && (q.Press || q.ref() == s.Front) {
			if q.Press = false; q.ref() == s.Front {
				s.Front = Ref{}
			}
			s.Queued = slices.DeleteFunc(s.Queued, func(o *Request) bool { return o == q })
			s.propose(q)
		}
	}
	for _, q := range slices.Clone(s.Proposed) {
		if s.judge(out, by, q, now) {
			set = append(set, s.of(q).due(q.Task, project))
		}
	}
	s.prove()
	s.press()
	s.restack()
	open, s.toOpen = s.toOpen, nil
	return slices.DeleteFunc(open, func(q *Request) bool { return !slices.Contains(s.Proposed, q) }), set
}

// judge ends a proposed request whose change has to be made again, has one wait
// that a person has to look at, and lets one go on that no person has to look at
// any more. It reports whether a timer has to be set for it.
func (s Pulls) judge(out *outbox.Messages, by rules.Version, q *Request, now time.Time) (set bool) {
	p := s.of(q)
	if p.Opening || p.Seen == nil {
		if p.Denied != "" {
			s.waits(out, by, q, &forge.MergeResult{Branch: p.Branch, BaseBranch: p.Base, Pull: p.Seen}, now)
		}
		return false
	}
	seen := *p.Seen
	seen.Checks, seen.Reviews = nil, nil
	result := &forge.MergeResult{Branch: p.Branch, BaseBranch: p.Base, Pull: &seen}
	switch p.status() {
	case pull.Merged:
		s.merged(TaskRef{q.Intent, q.Task})
	case pull.Unwanted:
		result.Outcome, seen.Reviews = forge.MergeUnwanted, p.Wishes(p.Seen)
		p.TakeUp(p.Seen)
		s.end(out, q, &forge.MergeEnded{Task: q.Task, Number: q.Number, Result: result})
	case pull.Failing:
		result.Outcome, seen.Checks = forge.MergeChecksFailed, p.Failed(q.Change.Pull, p.Seen)
		s.end(out, q, &forge.MergeEnded{Task: q.Task, Number: q.Number, Result: result})
	case pull.Closed, pull.Elsewhere, pull.Removed:
		s.hold(out, q, forge.MergeClosed, result)
	case pull.Edited:
		if by.Has(rules.SecondPush) {
			if p.Announced != seen.Head { // it is at another commit than the one that a person was told of
				p.Held = ""
			}
			p.Announced = seen.Head
		}
		s.hold(out, q, forge.MergeEdited, result)
	case pull.Foreign, pull.Outdated, pull.Pending, pull.Blocked, pull.Behind, pull.Ready, pull.Queued:
		return s.waits(out, by, q, result, now)
	}
	p.stands("", now)
	return false
}

// hold tells a task that a person has to look at its pull request, or, without
// an outcome, that none has to any more. Each is told once.
func (s Pulls) hold(out *outbox.Messages, q *Request, why forge.MergeOutcome, result *forge.MergeResult) {
	p := s.of(q)
	if p.Held == why {
		return
	}
	p.Held = why
	if result.Outcome = why; why == "" {
		result.Outcome = forge.MergeProposed
	}
	s.answer(out, q, &forge.MergeEnded{Task: q.Task, Number: q.Number, Result: result})
}

// end answers a proposed request.
func (s Pulls) end(out *outbox.Messages, q *Request, answer *forge.MergeEnded) {
	s.Proposed = slices.DeleteFunc(s.Proposed, func(o *Request) bool { return o == q })
	s.of(q).Held = ""
	s.answer(out, q, answer)
}

// answer tells a task of its pull request, and keeps that for whoever asks again.
func (s Pulls) answer(out *outbox.Messages, q *Request, answer *forge.MergeEnded) {
	t := s.Tasks[q.Intent][q.Task]
	t.Pull.Looks++
	answer.Look = t.Pull.Looks
	t.Answer = keep(answer)
	answerMerge(out, q.Intent, answer)
}

// isReady reports whether a proposed change may be merged as it is.
func (s Pulls) isReady(q *Request) bool {
	p := s.of(q)
	return !p.Opening && p.Seen != nil && p.status() == pull.Ready
}

// press has the forge asked to merge what is ready, where it is the forge that
// merges.
func (s Pulls) press() {
	for _, q := range slices.Clone(s.Proposed) {
		if q.Change.Pull.By != byForge || !s.isReady(q) || !s.mayMerge(q) || !s.of(q).RetryAt.IsZero() {
			continue
		}
		s.Proposed = slices.DeleteFunc(s.Proposed, func(o *Request) bool { return o == q })
		q.Press = true
		s.Queued = insert(s.Queued, q)
	}
}

// byQueue is PullPolicy.Method where the forge merges by its own queue.
const byQueue = "queue"

// byForge is PullPolicy.By where the rules have the forge merge.
const byForge = "forge"

// restack puts the next change on the tip that is only behind, unless one is
// there already that waits for its checks, or is ready. One that waits for
// another one's file lock keeps none from that, and neither does one of which a
// person was told.
func (s Pulls) restack() {
	if s.isMoving() || slices.ContainsFunc(s.Proposed, func(q *Request) bool {
		return s.mayMerge(q) && s.of(q).Held == "" && (s.isFront(q) || s.isReady(q))
	}) {
		return
	}
	s.Front = Ref{}
	for _, q := range s.Proposed {
		p := s.of(q)
		if p.Opening || p.Seen == nil || p.status() != pull.Behind || !s.mayMerge(q) {
			continue
		}
		s.Front = q.ref()
		s.Proposed = slices.DeleteFunc(s.Proposed, func(o *Request) bool { return o == q })
		s.Queued = insert(s.Queued, q)
		return
	}
}

// isMoving reports whether the base branch is about to move, or the front to be
// put on it.
func (s Pulls) isMoving() bool {
	moves := func(q *Request) bool { return q.Press || q.Proving != nil || q.ref() == s.Front }
	lands := func(ref TaskRef) bool { return s.Tasks[ref.Intent][ref.Task].Pull.RetryAt.IsZero() }
	return s.Current != nil && moves(&s.Current.Request) || slices.ContainsFunc(s.Queued, moves) || slices.ContainsFunc(s.ToProve, lands)
}

// isFront reports whether a proposed change is the front, and nothing has
// stopped it.
func (s Pulls) isFront(q *Request) bool {
	p := s.of(q)
	if q.ref() != s.Front {
		return false
	}
	if p.Opening || p.Seen == nil {
		return true
	}
	at := p.status()
	return at == pull.Pending || at == pull.Outdated || at == pull.Ready
}

// baseMoved notes that the base branch has moved under all that is proposed.
func (s Pulls) baseMoved() {
	for _, q := range s.Proposed {
		s.of(q).Moved = true
	}
	for _, q := range s.Queued {
		if q.Press {
			s.of(q).Moved = true
		}
	}
}
