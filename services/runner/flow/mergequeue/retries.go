package mergequeue

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// What a forge could not do is asked for again when a timer fires, which belongs to the task: to
// open its pull request, to merge it, or to prove that it is merged.

// timerKey returns the key of the timer that fires at RetryAt.
func timerKey(t forge.TaskID) string { return "pull/" + string(t) }

// TryAgain lets an attempt at the forge, or to prove a merge, be made again
// because its timer fired, and reports whether it does.
func (s Pulls) TryAgain(fired *forge.TimerFired) bool {
	if s.fallsDue(fired) {
		return true
	}
	for _, ref := range s.retried() {
		p := s.Tasks[ref.Intent][ref.Task].Pull
		if timerKey(ref.Task) != fired.Key || !p.RetryAt.Equal(fired.At) {
			continue
		}
		p.RetryAt = time.Time{}
		for _, q := range s.Proposed {
			if q.Task == ref.Task && p.Opening {
				s.open(q)
			}
		}
		return true
	}
	return false
}

// timers returns those that are set of pull requests.
func (s Pulls) timers(project forge.Key) (list []forge.Timer) {
	for _, ref := range s.retried() {
		list = append(list, forge.Timer{To: project, Key: timerKey(ref.Task), At: s.Tasks[ref.Intent][ref.Task].Pull.RetryAt})
	}
	for _, q := range s.atForge() {
		if p := s.of(q); !p.DueAt.IsZero() {
			list = append(list, p.due(q.Task, project))
		}
	}
	return list
}

// retried returns the tasks that wait for another attempt: at the forge, or to
// prove that it merged.
func (s Pulls) retried() (list []TaskRef) {
	for _, q := range s.Proposed {
		list = append(list, TaskRef{q.Intent, q.Task})
	}
	return slices.DeleteFunc(append(list, s.ToProve...), func(ref TaskRef) bool {
		p := s.Tasks[ref.Intent][ref.Task].Pull
		return p == nil || p.RetryAt.IsZero()
	})
}
