package mergequeue

import (
	"cmp"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/pull"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// A change that is merged by a pull request waits for people and for checks of
// the forge, for hours. So it does not keep the place of the merge that is under
// way meanwhile. Its merge command ends with the change on its branch, and from
// then on it is one of the proposed ones:
//
//	            proposed              ready, up to date               merged
//	Current ---------------> Proposed -------------------> merge_pull --------> Proving --> merged, and proved
//	   ^                      |    ^                           |                   ^
//	   |  ready, but behind:  |    +---- not merged -----------+                   |
//	   +--- only the front ---+                                                    |
//	                          +--- merged by a person -----------------------------+
//	                          +--- checks failed, changes asked for: the change is made again
//	                          +--- closed, edited by another one: waits for a person, and goes on when that is over
//
// Nothing follows from what happens, only from what was seen last (package
// pull): Advance compares that with where each change is, after every event. A
// look that is lost, late, doubled or out of order costs time and nothing else.
//
// A merge moves the base branch under all others. To put each of them on the new
// tip at once would have the forge check n changes n times. So only one of them,
// the front, is put there, when nothing else is in its way, and none other until
// it is merged or stopped by something. n pull requests that nothing stops cost
// n checks when they are opened and at most n - 1 more.

// Pull is the pull request of a task, as far as the queue knows it. The task has
// one for all of its changes.
type Pull struct {
	pull.Ours

	// Change is the request that was proposed last.
	Change *forge.QueueMerge
	// Opens counts the attempts to open it or to bring it up to date; Opening
	// says that the newest one is not answered.
	Opens   int
	Opening bool
	// Claims is the newest claim of a merge of Change.
	Claims int
	// Errors counts the failures in a row of attempts at the forge.
	Errors int
	// RetryAt is when the next attempt is made at what failed; zero if none did.
	RetryAt time.Time
	// Seen is the newest look; nil before the first.
	Seen *forge.PullRequest
	// Moved says that the base branch has moved since the change was put on it,
	// whatever was seen.
	Moved bool
	// Looks counts the messages to its task. Held is the outcome by which it was
	// told to wait for a person; empty if it need not.
	Looks int
	Held  forge.MergeOutcome
	// Denied is why the forge refuses what it was asked for, until a person mends
	// that; empty if it does not.
	Denied string
	// At is where it stands while it waits for others, Since when, and DueAt when a
	// person is told because it still does. Overdue says that this time has come.
	At           pull.Status
	Since, DueAt time.Time
	Overdue      bool
	// Late has the checks that have not ended since then, of those that were
	// waited for at first, in the order of the policy; none where no name is
	// known. Announced has the words in which a person was told of them last.
	Late      []string
	Announced string
	// Unproved says that its task was told that its merge cannot be proved.
	Unproved bool
}

// TaskRef names a task.
type TaskRef struct {
	Intent forge.IntentID
	Task   forge.TaskID
}

// Pulls are the rules of a queue about pull requests.
type Pulls struct{ *State }

// of returns the pull request of a request that was proposed.
func (s Pulls) of(q *Request) *Pull { return s.Tasks[q.Intent][q.Task].Pull }

// attempt returns the newest attempt to open it.
func (p *Pull) attempt(t forge.TaskID) forge.Attempt {
	return forge.Attempt{Task: t, Step: forge.StepOpenPull, Number: p.Change.Number, Claim: p.Opens}
}

// status returns where it stands, by what was seen last.
func (p *Pull) status() pull.Status {
	switch at := p.Status(p.Change.Pull, p.Seen); {
	case at == pull.Ready && p.Moved && p.Change.Pull.Method != byQueue: // a look says whether the queue minds
		return pull.Behind
	default:
		return at
	}
}

// input returns the input of the steps open_pull and merge_pull.
func (p *Pull) input() *forge.PullInput {
	in := &forge.PullInput{
		Branch: p.Branch, Base: p.Base, Head: p.Head, Parent: p.Parent, PatchID: p.Patch, Title: p.Change.Title, Number: p.Number, Policy: *p.Change.Pull,
	}
	if p.Change.Facts != nil {
		in.Facts = *p.Change.Facts
	}
	return in
}

// proposed takes that the change under way is on its branch, and has its pull
// request opened, or brought up to date.
func (s Pulls) proposed(out *outbox.Messages, m *Merge, in *forge.MergeResult, executor forge.Executor) {
	t := s.Tasks[m.Intent][m.Task]
	p := t.Pull
	if p == nil || p.Branch != in.Branch || p.Base != in.BaseBranch {
		p = &Pull{Ours: pull.Ours{Branch: in.Branch, Base: in.BaseBranch}}
		if t.Pull != nil {
			p.Opens, p.Looks, p.Replaced = t.Pull.Opens, t.Pull.Looks, t.Pull.Replaced
		}
		t.Pull = p
	}
	p.MarkDone(p.Seen, in.Commit)
	if a := p.replaces(m.Change); a != nil {
		p.Replace(a)
		p.Unanswered = nil // the change that was made for these remarks is not the one that is pushed
	}
	if p.Barred = nil; adopted(m.Change) != nil {
		p.Barred = adopted(m.Change).Barred
	}
	p.Push(pull.Head{Commit: in.Commit, Patch: in.PatchID, Parent: in.Parent, Tree: in.Tree})
	p.Change, p.Claims, p.Moved = m.Change, m.Claim, false
	p.Denied = ""
	p.stands("", time.Time{})
	q := s.rest(out)
	if q == nil {
		return
	}
	if in.Candidate != nil { // what was verified; the next merge need not do that on the same tip
		q.Verified, q.VerifiedIn = in.Candidate, executor
	}
	p.Errors, p.RetryAt = 0, time.Time{}
	s.open(q)
}

// over returns the commit of another one that the head branch may be at when the change of a
// request is pushed: the one that it began with, unless it has taken its place already. That is so
// once for each adoption. A person who puts the branch back to that commit after the push has
// changed the branch of another one, as by any other push, and is not overwritten: the queue knows
// by then that the commit was replaced, and names it no more before a person has adopted it again.
func (s Pulls) over(q *Request) string {
	if a := s.of(q).replaces(q.Change); a != nil {
		return a.Commit
	}
	return ""
}

// replaces returns the adoption whose commit a change takes the place of when
// it is pushed; nil if there is none.
func (p *Pull) replaces(q *forge.QueueMerge) *forge.Adoption {
	if a := adopted(q); p == nil || p.Replaces(a) {
		return a
	}
	return nil
}

// adopted returns the commit of another one that a change began with; nil if there is none.
func adopted(q *forge.QueueMerge) *forge.Adoption {
	if q == nil || q.Facts == nil {
		return nil
	}
	return q.Facts.Adopted
}

// rest takes the change under way out of its place, to the proposed ones. What
// was withdrawn meanwhile, or asked for anew, is given up, or the forge would be
// asked again to merge it: then rest returns nil.
func (s Pulls) rest(out *outbox.Messages) *Request {
	if m := s.Current; !turns(s).isWanted(m) {
		s.close(out, &forge.MergeEnded{Task: m.Task, Number: m.Number, Failure: &forge.Failure{
			Reason: forge.FailKilled, Message: "the pull request is not wanted any more",
		}})
		return nil
	}
	q := s.Current.Request
	q.Car, q.Press = &Car{Claims: s.Current.Claim}, false
	s.Current = nil
	s.propose(&q)
	return &q
}

// propose puts a request to the proposed ones, in their order.
func (s Pulls) propose(q *Request) { s.Proposed = insert(s.Proposed, q) }

// insert puts a request into a list at its place.
func insert(list []*Request, q *Request) []*Request {
	i, _ := slices.BinarySearchFunc(list, q.Order, func(o *Request, order int) int { return o.Order - order })
	return slices.Insert(list, i, q)
}

// open has the next attempt made to open the pull request of a request.
func (s Pulls) open(q *Request) {
	p := s.of(q)
	p.Opening, p.RetryAt = true, time.Time{}
	p.Opens++
	s.toOpen = append(s.toOpen, q)
}

// Opening returns the requests whose pull requests are being opened.
func (s Pulls) Opening() (list []*Request) {
	for _, q := range s.Proposed {
		if p := s.of(q); p.Opening && p.RetryAt.IsZero() {
			list = append(list, q)
		}
	}
	return list
}

// Looked takes a gateway's report on a pull request: the end of an attempt to
// open or to merge it, or a later look.
func (s Pulls) Looked(out *outbox.Messages, by rules.Version, r *forge.Result, now time.Time) (forge.Decision, error) {
	id, task := r.To.Intent, r.Attempt.Task
	t := s.Tasks[id][task]
	if t == nil || t.Pull == nil || r.IsStart() {
		return rule.Ignore("%s has no pull request that is known", task)
	}
	p := t.Pull
	pressed := s.Current != nil && s.Current.Attempt() == r.Attempt
	opened := p.Opening && p.RetryAt.IsZero() && p.attempt(task) == r.Attempt
	seen, failure := p.read(r, now)
	switch {
	case (pressed || opened) && seen == nil:
		s.failed(out, by, p, task, failure, now)
		return forge.Applied, nil
	case seen == nil:
		return rule.Ignore("attempt %s is not open", r.Attempt)
	case !pressed && !opened && !pull.IsNews(p.Seen, seen):
		return rule.Ignore("nothing of that pull request is new")
	}
	if p.Seen == nil || !seen.Seen.Before(p.Seen.Seen) {
		p.Seen = seen
	}
	p.Number = seen.Number
	switch {
	case opened:
		p.Opening, p.Errors, p.Denied = false, 0, ""
		if seen.Head == p.Head { // otherwise the forge may not have shown the commit that the answers name
			p.Unanswered = nil
		}
	case pressed:
		p.Denied = ""
		s.pressed(out, p, now)
	}
	if p.Seen.State == forge.PullMerged {
		s.merged(TaskRef{id, task})
	}
	return forge.Applied, nil
}

// read returns the look that a result holds, or why it holds none of this
// pull request.
func (p *Pull) read(r *forge.Result, now time.Time) (*forge.PullRequest, *forge.Failure) {
	seen, failure := forge.As[*forge.PullRequest](r.Output), r.Failure()
	switch {
	case failure != nil:
		return nil, failure
	case seen == nil:
		return nil, &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the result holds no answer for its step"}
	case p.Status(p.Change.Pull, seen) == pull.Foreign:
		return nil, &forge.Failure{Reason: forge.FailInvalidOutput, Message: "what was seen is another pull request"}
	}
	return bounded(seen, now), nil
}

// pressed takes that the forge was asked to merge. That it is open still is no
// reason to ask at once again: the forge may take a moment, or not say what is
// in the way.
func (s Pulls) pressed(out *outbox.Messages, p *Pull, now time.Time) {
	if p.status() == pull.Queued {
		p.Errors = 0
	} else if p.Seen.State != forge.PullMerged {
		p.RetryAt = now.Add(min(firstRest<<min(p.Errors, 10), longestRest))
		p.Errors++
	}
	s.rest(out)
}

// bounded returns a look with a time that is not after the present: a gateway
// with a clock in the future would have all others not heard.
func bounded(seen *forge.PullRequest, now time.Time) *forge.PullRequest {
	if !seen.Seen.After(now) {
		return seen
	}
	at := *seen
	at.Seen = now
	return &at
}

// failed takes that an attempt at the forge failed: it is made again later. That
// a forge is away, for however long, fails no change, and neither does what a
// person has to mend there, as a token that is not taken any more.
func (s Pulls) failed(out *outbox.Messages, by rules.Version, p *Pull, task forge.TaskID, f *forge.Failure, now time.Time) {
	m := s.Current
	pressed := m != nil && m.Task == task && m.Press
	denied := rule.GivesUp(f.Reason)
	if denied && !by.Has(rules.HeldPulls) {
		answer := &forge.MergeEnded{Task: task, Number: p.Change.Number, Failure: f}
		if p.Opening = false; pressed {
			s.rest(out)
		}
		for _, q := range slices.Clone(s.Proposed) {
			if q.Task == task {
				s.end(out, q, answer)
			}
		}
		return
	}
	policy := forge.DefaultPolicy()
	pause := min(rule.Failures[f.Reason].Then.Pause(max(policy.RetryBackoff, time.Second), min(p.Errors, 10)), longestRest)
	if denied {
		pause, p.Denied = longestRest, cmp.Or(f.Message, string(f.Reason))
	}
	p.RetryAt = now.Add(pause)
	if f.Until.After(p.RetryAt) {
		p.RetryAt = f.Until
	}
	p.Errors++
	if pressed {
		s.rest(out)
	}
}

// IsIdle reports whether nothing of the queue goes on by itself. What waits for
// its pull request waits for others.
func (s Pulls) IsIdle() bool {
	return s.Current == nil && s.Refused == nil && len(s.Trials()) == 0 && len(s.Opening()) == 0
}

// Beside returns the attempts that are open beside the merge under way: trials,
// and to open pull requests.
func (s Pulls) Beside() (list []forge.Attempt) {
	for _, q := range s.Trials() {
		list = append(list, q.Attempt())
	}
	for _, q := range s.Opening() {
		list = append(list, s.of(q).attempt(q.Task))
	}
	return list
}

// mayBeMerged reports whether a person may have merged a change of these files,
// of which nothing was seen yet.
func (s Pulls) mayBeMerged(files []string) bool {
	is := func(q *Request) bool { return overlap(q.Files, files) }
	proving := slices.ContainsFunc(s.Queued, func(q *Request) bool { return q.Proving != nil && is(q) })
	return proving || slices.ContainsFunc(s.Proposed, is) || s.Current != nil && s.Current.Proving != nil && is(&s.Current.Request)
}

// drop removes a task's requests to merge that wait for their turn, or at the
// forge.
func (s Pulls) drop(t forge.TaskID) {
	is := func(q *Request) bool { return q.Task == t }
	s.dropQueued(is)
	s.Proposed = slices.DeleteFunc(s.Proposed, is)
}
