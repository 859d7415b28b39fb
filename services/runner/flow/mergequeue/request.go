package mergequeue

import (
	"cmp"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// Lock asks for the lock on the files of a change that lost a conflict. It is
// denied to a task that held a lock which no other task can have broken. A
// request that was answered is answered again.
func (s *State) Lock(out *outbox.Messages, id forge.IntentID, r *forge.LockFiles) (forge.Decision, error) {
	t := s.task(id, r.Task)
	if r.Number <= t.Number {
		s.repeatLock(out, id, r, t)
		return rule.Ignore("request %d of %s is known already", r.Number, r.Task)
	}
	s.renew(id, r.Task, t, r.Number)
	if t.merged() {
		answerMerge(out, id, t.Answer.message())
		return forge.Applied, nil
	}
	next := &Request{Intent: id, Task: r.Task, Number: r.Number, Files: r.Files}
	if i := slices.IndexFunc(s.Locks, func(l *Request) bool { return l.Task == r.Task }); i >= 0 {
		held := s.Locks[i]
		if held.AllFiles || !overlap(held.MergedSince, r.Conflicts) && !(Pulls{s}).mayBeMerged(r.Conflicts) {
			t.Denied = r.Number
			answerLock(out, id, r.Task, r.Number, false)
			return forge.Applied, nil
		}
		next.AllFiles = true
	}
	s.dropTask(r.Task)
	s.Waiting = append(s.Waiting, next)
	return forge.Applied, nil
}

// repeatLock answers a request for a lock that was answered before, and leaves
// one that waits.
func (s *State) repeatLock(out *outbox.Messages, id forge.IntentID, r *forge.LockFiles, t *Task) {
	switch {
	case r.Number != t.Number:
	case t.Denied == r.Number:
		answerLock(out, id, r.Task, r.Number, false)
	case slices.ContainsFunc(s.Locks, func(l *Request) bool { return l.Task == r.Task && l.Number == r.Number }):
		answerLock(out, id, r.Task, r.Number, true)
	}
}

// Merge queues a commit. A newer request takes the place of the task's older one.
// A change that turned out to be merged already is answered at once, and so is a
// request that was answered before.
func (s *State) Merge(out *outbox.Messages, id forge.IntentID, r *forge.QueueMerge) (forge.Decision, error) {
	t := s.task(id, r.Task)
	if r.Number <= t.Number {
		if t.Answer != nil && t.Answer.Number == r.Number {
			answerMerge(out, id, t.Answer.message())
		}
		return rule.Ignore("request %d of %s is known already", r.Number, r.Task)
	}
	s.renew(id, r.Task, t, r.Number)
	t.Files, s.Parallel, s.Batch = r.Files, cmp.Or(r.Parallel, s.Parallel), r.Batch
	if t.merged() {
		again := *t.Answer
		again.Number = r.Number
		t.Answer = &again
		answerMerge(out, id, t.Answer.message())
		return forge.Applied, nil
	}
	Pulls{s}.drop(r.Task)
	if t.Pull != nil {
		t.Pull.Held, t.Pull.Unproved = "", false // of the request before
	}
	if t.Pull != nil && t.Pull.Seen != nil && t.Pull.Seen.State == forge.PullMerged {
		Pulls{s}.merged(TaskRef{id, r.Task})
	}
	s.Orders++
	s.Queued = append(s.Queued, &Request{Intent: id, Task: r.Task, Number: r.Number, Files: r.Files, Change: r, Order: s.Orders})
	return forge.Applied, nil
}

// Withdraw takes back what a task of an active run asked for, and releases its
// lock. A request up to that number which arrives later is void as well.
func (s *State) Withdraw(id forge.IntentID, w *forge.WithdrawRequests) (forge.Decision, error) {
	t := s.task(id, w.Task)
	if w.Number < t.Number || t.Withdrawn == w.Number {
		return NotInForce(w)
	}
	s.renew(id, w.Task, t, w.Number)
	t.Withdrawn = w.Number
	s.dropTask(w.Task)
	return forge.Applied, nil
}

// NotInForce is the decision on withdrawing what is not in force any more.
func NotInForce(w *forge.WithdrawRequests) (forge.Decision, error) {
	return rule.Ignore("request %d of %s is not in force", w.Number, w.Task)
}

// StartNext gives the locks that can be given and takes the next change out of
// the queue. It returns the merge to issue; nil if one is under way, nothing may
// be merged, the project is paused, the origin refuses pushes, or the trial of the
// next change is about to end. It has to be called after every step, and once more
// after Couple, or a change that Couple took out of the train would not begin its merge.
func (s *State) StartNext(out *outbox.Messages, paused bool) *Merge {
	s.giveLocks(out)
	if s.Current == nil && len(s.Queued) == 0 {
		s.Refused = nil // the next change finds out as well
	}
	if s.Current != nil || paused || s.Refused.rests() {
		return nil
	}
	i := s.next()
	if i < 0 || s.Queued[i].Car.mayFinish() || (batches{s}).gathers(s.Queued[i]) {
		return nil
	}
	r := s.Queued[i]
	if r.Car != nil && (r.Car.is(Trying) || r.Car.is(Riding) || len(r.Car.Ahead) > 0) {
		s.uncouple(r) // it stands on what was not merged
	}
	s.Queued, s.Overtaken = slices.Delete(s.Queued, i, i+1), Ref{}
	s.Current = &Merge{Request: *r, Claim: r.Car.claims() + 1}
	return s.Current
}

// giveLocks gives the lock to every request that overlaps neither with a lock in
// force, nor with what was asked for earlier, nor with what is being merged.
func (s *State) giveLocks(out *outbox.Messages) {
	if len(s.Waiting) == 0 {
		return
	}
	var taken fileSet
	for _, l := range s.Locks {
		taken.add(l)
	}
	if s.Current != nil {
		taken.add(&s.Current.Request)
	}
	var waiting []*Request
	for _, r := range s.Waiting {
		if taken.overlaps(r) {
			waiting = append(waiting, r)
		} else {
			s.Locks = append(s.Locks, r)
			answerLock(out, r.Intent, r.Task, r.Number, true)
		}
		taken.add(r)
	}
	s.Waiting = waiting
}

// mayMerge reports whether no other task holds an older lock on the files, and no red
// base branch keeps the change from passing. What was verified nowhere yet may be what
// mends that: its merge finds out, and has it wait with the others if it does not.
func (s *State) mayMerge(r *Request) bool {
	if s.Red != "" && r.Change.Base != s.Red && !r.Change.Unverified {
		return false
	}
	for _, l := range s.Locks {
		if l.Task == r.Task {
			return true
		}
		if l.AllFiles || overlap(l.Files, r.Files) {
			return false
		}
	}
	return true
}

// fileSet is the files of several requests.
type fileSet struct {
	// any says that the set has a request, and all that one of them is for
	// every file.
	any, all bool
	files    map[string]bool
}

// add adds the files of a request.
func (f *fileSet) add(r *Request) {
	f.any, f.all = true, f.all || r.AllFiles
	if f.files == nil {
		f.files = map[string]bool{}
	}
	for _, name := range r.Files {
		f.files[name] = true
	}
}

// overlaps reports whether a request has a file of the set.
func (f *fileSet) overlaps(r *Request) bool {
	return f.all || r.AllFiles && f.any || slices.ContainsFunc(r.Files, func(name string) bool { return f.files[name] })
}

// overlap reports whether two lists have a file in common.
func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(f string) bool { return slices.Contains(b, f) })
}
