package queue

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/mergequeue"
)

// Pace is how long the work of a merge queue takes.
type Pace struct {
	// Trial is the duration of a trial, Merge that of a merge.
	Trial, Merge time.Duration
}

// # How it is laid out
//
// There are as many places as the queue verifies changes at once, and the merge under way has
// one of them. What is under way ends when its kind takes the median, or at any moment if it
// has taken longer. Then the next changes that have no car are tried in their order, a batch
// in one place, each when the first place is free. Changes land in the order of the queue:
// each when its trial has ended, the one before has merged, and its own merge is done.

// Left returns for each change of a line how long it takes until it is merged, if
// every trial and every merge takes as long as the median, passes, and no other
// change comes first. What is said of those at pull requests means nothing.
//
// A merge verifies by itself what no trial has found; a trial begins when one
// of those before it has ended. elapsed says for how long an attempt has been
// under way: one that takes longer than the median ends at any moment.
func (p Pace) Left(l mergequeue.Line, elapsed func(forge.Attempt) time.Duration) []time.Duration {
	s := schedule{pace: p, found: min(p.Merge, p.Trial), free: make([]time.Duration, max(l.Parallel, 1))}
	if p.Trial == 0 || l.Parallel < 2 { // without a train, each merge verifies by itself
		s.found = p.Merge
	}
	left := make([]time.Duration, len(l.Places))
	ends := s.underWay(l, elapsed)
	merged, gathered, run := time.Duration(0), 0, time.Duration(0)
	for i := range l.Places {
		at := &l.Places[i]
		ready, takes := merged, p.Merge
		switch {
		case at.Position == 0:
			continue
		case at.Merging:
			merged = max(p.Merge-elapsed(at.Attempt), 0)
			left[i] = merged
			continue
		case l.Parallel < 2 || p.Trial == 0:
		case at.Trial == mergequeue.Passed:
			takes = s.found
		case at.Trial == mergequeue.Trying, at.Trial == mergequeue.Riding:
			ready, takes = ends[at.Task], s.found
		default:
			if gathered == 0 {
				run = s.take()
			}
			gathered = (gathered + 1) % max(l.Batch, 1)
			ready, takes = run, s.found
		}
		merged = max(merged, ready) + takes
		left[i] = merged
	}
	return left
}

// schedule has the places in which trials run.
type schedule struct {
	pace Pace
	// found is how long a merge takes that need not verify, at most.
	found time.Duration
	// free says when each place is free.
	free []time.Duration
}

// underWay takes places for the merge and the trials that are under way, and returns when the
// trial of each task ends, whether it has one of its own or another one verifies it, too.
func (s *schedule) underWay(l mergequeue.Line, elapsed func(forge.Attempt) time.Duration) map[forge.TaskID]time.Duration {
	ends := map[forge.TaskID]time.Duration{}
	n := 0
	for i := range l.Places {
		at := &l.Places[i]
		takes := s.pace.Trial
		switch {
		case at.Merging:
			takes = s.pace.Merge
		case at.Trial != mergequeue.Trying:
			continue
		}
		end := max(takes-elapsed(at.Attempt), 0)
		for _, t := range append([]forge.TaskID{at.Task}, at.With...) {
			ends[t] = end
		}
		if n < len(s.free) {
			s.free[n] = end
			n++
		}
	}
	return ends
}

// take has a trial begin in the place that is free first, and returns when it ends.
func (s *schedule) take() time.Duration {
	i := slices.Index(s.free, slices.Min(s.free))
	s.free[i] += s.pace.Trial
	return s.free[i]
}
