package mergequeue

import (
	"cmp"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// A change that the forge merged is on the base branch before the queue has checked anything of
// it. So it goes in front of all others, and its merge command only proves that: the commit of
// the forge is there, and is the change that was reviewed.

// merged notes that the pull request of a task is merged, by whomever. It is
// proved when the merge under way, if that is the task's own, has ended.
func (s Pulls) merged(ref TaskRef) {
	s.Tasks[ref.Intent][ref.Task].Pull.RetryAt = time.Time{}
	if !slices.Contains(s.ToProve, ref) {
		s.ToProve = append(s.ToProve, ref)
	}
}

// prove puts the changes that the forge merged in front of all others: they are
// on the base branch already.
func (s Pulls) prove() {
	s.Queued = slices.DeleteFunc(s.Queued, func(q *Request) bool { return q.Proving != nil && s.task(q.Intent, q.Task).merged() })
	s.ToProve = slices.DeleteFunc(s.ToProve, func(ref TaskRef) bool {
		t := s.Tasks[ref.Intent][ref.Task]
		if t.merged() || slices.ContainsFunc(s.Queued, func(q *Request) bool { return q.Task == ref.Task && q.Proving != nil }) {
			return true
		}
		if s.Current != nil && s.Current.Task == ref.Task || !t.Pull.RetryAt.IsZero() {
			return false
		}
		s.Queued = slices.Insert(s.Queued, 0, s.proof(ref))
		return true
	})
}

// proof returns the request to prove that the pull request of a task is
// merged, in place of what the task asks for. It has the number of the newest
// request, which the task waits for, whatever change was merged.
func (s Pulls) proof(ref TaskRef) *Request {
	t := s.Tasks[ref.Intent][ref.Task]
	p, claims := t.Pull, t.Pull.Claims
	for _, q := range s.Queued {
		if q.Task == ref.Task {
			claims = max(claims, q.Car.claims())
		}
	}
	s.drop(ref.Task)
	head := p.Merged(p.Seen)
	return &Request{
		Intent: ref.Intent, Task: ref.Task, Number: t.Number, Files: p.Change.Files, Change: p.Change, Car: &Car{Claims: claims},
		Proving: &forge.Landing{Commit: cmp.Or(p.Seen.MergeCommit, p.Seen.Head), Head: head.Commit, Parent: head.Parent, Tree: head.Tree},
	}
}

// unproved takes that it cannot be proved now that a pull request is merged: the
// forge says so, and the base branch does not have it, or cannot be read. The
// task waits for a person, and the proof is tried again at the time returned,
// for as long as it takes.
func (s Pulls) unproved(out *outbox.Messages, m *Merge, now time.Time) time.Time {
	p := s.of(&m.Request)
	s.Current, p.Claims = nil, max(p.Claims, m.Claim)
	s.merged(TaskRef{m.Intent, m.Task})
	p.RetryAt = now.Add(longestRest)
	if p.Unproved {
		return p.RetryAt
	}
	p.Unproved, p.Held = true, ""
	seen := *p.Seen
	seen.Checks, seen.Reviews = nil, nil
	s.hold(out, &m.Request, forge.MergeClosed, &forge.MergeResult{Branch: p.Branch, BaseBranch: p.Base, Pull: &seen})
	return p.RetryAt
}
