package mergequeue

import (
	"cmp"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// afterMerge lists the outcomes of a merge and their consequences. The task's queued
// requests and its lock are released when it is merged, and when it waits for a
// person's files, so that other tasks do not wait with it. With any other outcome
// the task continues and keeps its lock.
var afterMerge = map[forge.MergeOutcome]struct {
	release bool // its requests and its lock
	moved   bool // the base branch has the change now
}{
	forge.MergeDone:         {release: true, moved: true},
	forge.MergeDirty:        {release: true},
	forge.MergeConflict:     {},
	forge.MergePatchChanged: {},
	forge.MergeVerifyFailed: {},
	forge.MergeRefused:      {}, // never an answer: see refused
	forge.MergeOvertaken:    {}, // the same: see overtaken
	forge.MergeProposed:     {}, // no end: see pulls
	forge.MergeEdited:       {},
	forge.MergeClosed:       {}, // this and those below are no results of a merge: see pulls
	forge.MergeChecksFailed: {},
	forge.MergeUnwanted:     {},
	forge.MergeDenied:       {},
	forge.MergeOverdue:      {},
}

// Result takes a worker's report on the merge that is under way and answers the
// task. After a failure that may pass, the merge is repeated: then retryAt
// says when Retry is due, or NextRound if the
// origin refused the push.
func (s *State) Result(out *outbox.Messages, by rules.Version, r *forge.Result, now time.Time) (retryAt time.Time, d forge.Decision, err error) {
	if q := s.tried(r); q != nil {
		batches{s}.take(by, q, r)
		return time.Time{}, forge.Applied, nil
	}
	m := s.Current
	if m == nil || m.IsPaused() || r.Attempt != m.Attempt() || r.IsStart() {
		d, err = s.late(out, r)
		return time.Time{}, d, err
	}
	f := r.Failure()
	byPull := m.Change.Pull != nil
	switch in := cmp.Or(forge.As[*forge.MergeResult](r.Output), &forge.MergeResult{}); {
	case f != nil:
	case in.Outcome == forge.MergeProposed && byPull && m.Proving == nil:
		Pulls{s}.proposed(out, m, in, r.Executor)
		return time.Time{}, forge.Applied, nil
	case !r.Answers() || !ends(in.Outcome, byPull):
		f = &forge.Failure{Reason: forge.FailInvalidOutput, Message: "the result holds no answer for its step"}
	case in.Outcome == forge.MergeOvertaken:
		turns{s}.overtaken(out, m)
		return time.Time{}, forge.Applied, nil
	case in.Outcome == forge.MergeRefused:
		if s.refused(m, r, now) {
			if s.Refused.rests() {
				retryAt = s.Refused.NextAt
			}
			return retryAt, forge.Applied, nil
		}
		f = &forge.Failure{Reason: forge.FailPush, Message: in.Refusal}
	}
	if retryAt = (turns{s}).again(out, m, f, now); !retryAt.IsZero() {
		return retryAt, forge.Applied, nil
	}
	answer := &forge.MergeEnded{Task: m.Task, Number: m.Number, Failure: f, Executor: r.Executor}
	if f == nil {
		answer.Result = forge.As[*forge.MergeResult](r.Output)
	}
	s.close(out, answer)
	return time.Time{}, forge.Applied, nil
}

// again has the merge under way tried again later, if it failed for a reason
// that may pass, and returns when that is; zero if it is not. To prove what a
// forge merged is tried for as long as it takes.
func (t turns) again(out *outbox.Messages, m *Merge, f *forge.Failure, now time.Time) time.Time {
	policy := forge.DefaultPolicy()
	switch {
	case f == nil || rule.GivesUp(f.Reason):
	case m.Errors < policy.MaxAgentRetries && !(m.Proving != nil && Pulls(t).of(&m.Request).Unproved):
		m.RetryAt = now.Add(rule.Failures[f.Reason].Then.Pause(policy.RetryBackoff, m.Errors))
		m.Errors++
		return m.RetryAt
	case m.Proving != nil:
		return Pulls(t).unproved(out, m, now)
	}
	return time.Time{}
}

// ends reports whether a merge can end so, by a pull request or by a push.
func ends(o forge.MergeOutcome, byPull bool) bool {
	switch o {
	case forge.MergeTried, forge.MergeProposed, forge.MergeClosed, forge.MergeChecksFailed, forge.MergeUnwanted, forge.MergeDenied, forge.MergeOverdue:
		return false
	case forge.MergeEdited:
		return byPull
	case forge.MergeDone, forge.MergeConflict, forge.MergeVerifyFailed, forge.MergePatchChanged, forge.MergeRefused, forge.MergeOvertaken,
		forge.MergeDirty:
	}
	return true // what a newer version may say is told to the task
}

// close ends the merge that is under way and answers the task.
func (s *State) close(out *outbox.Messages, answer *forge.MergeEnded) {
	r, claim := s.Current.Request, s.Current.Claim
	s.Current = nil
	s.ended(&r, answer.Result)
	if answer.Result != nil {
		after := afterMerge[answer.Result.Outcome]
		if after.release {
			s.dropTask(r.Task)
		}
		if after.moved {
			s.moved(r.Files)
			s.accepted()
			Pulls{s}.baseMoved()
		}
	}
	if t := s.Tasks[r.Intent][r.Task]; t != nil {
		if t.Pull != nil {
			t.Pull.Claims = max(t.Pull.Claims, claim)
			t.Pull.Looks++
			answer.Look = t.Pull.Looks
		}
		t.Answer = keep(answer)
	}
	answerMerge(out, r.Intent, answer)
}

// moved tells every lock that the base branch has a change to these files.
func (s *State) moved(files []string) {
	for _, l := range s.Locks {
		l.MergedSince = append(l.MergedSince, files...)
	}
}

// late takes a report on a merge that is not open any more. It changes nothing,
// except that a commit on the base branch is a fact: a worker that was given up
// may have merged it all the same.
func (s *State) late(out *outbox.Messages, r *forge.Result) (forge.Decision, error) {
	id, task := r.To.Intent, r.Attempt.Task
	t := s.Tasks[id][task]
	if t == nil || r.Attempt.Number > t.Number || r.Attempt.Number < 1 {
		return rule.Ignore("attempt %s is not open", r.Attempt)
	}
	in := forge.As[*forge.MergeResult](r.Output)
	if t.merged() || in == nil || in.Outcome != forge.MergeDone {
		if t.Answer != nil && t.Answer.Number == r.Attempt.Number {
			answerMerge(out, id, t.Answer.message())
		}
		return rule.Ignore("attempt %s is not open", r.Attempt)
	}
	t.Answer = &Answer{Task: task, Number: r.Attempt.Number, Result: (*result)(in), Executor: r.Executor}
	if s.Current != nil && s.Current.Task == task {
		s.Current = nil
	}
	s.ended(&Request{Task: task, Number: r.Attempt.Number}, in)
	s.dropTask(task)
	s.moved(t.Files)
	Pulls{s}.baseMoved()
	answerMerge(out, id, t.Answer.message())
	return forge.Applied, nil
}

// Retry returns the merge to issue again because its timer fired; nil if that
// timer is not set.
func (s *State) Retry(fired *forge.TimerFired) *Merge {
	m := s.Current
	if m == nil || m.Stopped || !m.IsPaused() || m.TimerKey() != fired.Key || !m.RetryAt.Equal(fired.At) {
		return nil
	}
	m.RetryAt = time.Time{}
	m.Claim++
	return m
}

// Stop has the merge under way wait, if the result is of it, and reports whether it does. The
// request keeps its place, number and counters, because the merge did not fail by itself.
func (s *State) Stop(r *forge.Result) bool {
	m := s.Current
	if m == nil || m.IsPaused() || r.Attempt != m.Attempt() {
		return false
	}
	m.Stopped = true
	return true
}

// GoOn returns the merge that was stopped, to be issued again; nil if there is none.
func (s *State) GoOn() *Merge {
	m := s.Current
	if m == nil || !m.Stopped {
		return nil
	}
	m.Stopped = false
	m.Claim++
	return m
}
