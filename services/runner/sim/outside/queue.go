package outside

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// In some worlds the forge merges by a queue of its own: it puts what is in it on
// the tip, whatever that is, or takes it out, because checks fail there, it
// conflicts, or a person wants it out. A gateway takes out what may not be merged
// any more as soon as it sees that.

// Whatever the queue does, the rules hear of it by a look alone, late or never. So
// the checker knows three things: what is in the queue is neither put in again
// nor put on another tip, what was taken out because checks failed is made again
// once, and is not put in as it is.

// queue is the method of these worlds, and the others are why a pull request is
// taken out.
const (
	queue       = "queue"
	outChecks   = "checks"
	outConflict = "conflict"
	outOther    = "other"
)

// queued is where a pull request stands in the queue.
type queued struct {
	in bool
	// outs counts how often it was taken out by others than us, cause says why it
	// was the last time; empty while it is in.
	outs  int
	cause string
}

// failedInQueue reports whether a task is told that its checks failed in the
// queue, and not at its head, which the forge shows beside what was before.
func failedInQueue(m *forge.MergeEnded) bool {
	return m != nil && m.Result != nil && m.Result.Outcome == forge.MergeChecksFailed && m.Result.Pull.Queue != nil &&
		slices.ContainsFunc(m.Result.Pull.Checks, func(c forge.PullCheck) bool { return c.Name != "build" })
}

// isQueue reports whether the forge of the world merges by a queue.
func (f *Forge) isQueue() bool { return f.Policy.Method == queue }

// put puts a pull request in.
func (q *queued) put() { q.in, q.cause = true, "" }

// take takes one out.
func (q *queued) take(cause string) {
	q.in, q.cause = false, cause
	q.outs++
}

// queue puts into a look where a pull request stands. Another head than ours, and
// one that a person asks to be changed, is out.
func (f *Forge) queue(p *pull, s *forge.PullRequest) {
	b := f.branches[p.Branch]
	if s.State != forge.PullOpen || b.head != b.ours || asked(s) {
		p.queued.in = false
	}
	s.Behind = false // the queue tries it on the tip
	s.Queue = &forge.PullQueue{In: p.queued.in}
	if !p.queued.in && p.queued.cause != "" {
		s.Queue.Out, s.Queue.Cause, s.Queue.Reason = fmt.Sprintf("%d/%d", p.Number, p.queued.outs), p.queued.cause, "it says so"
	}
}

// queueActs lets the queue merge a pull request, or take it out.
func (f *Forge) queueActs(p *pull, n int, merge func(head string) string) {
	if n < 23 || n > 31 || !p.queued.in {
		return
	}
	causes := []string{outChecks, outConflict, outOther}
	if n < 29 {
		f.Stopped++
		p.queued.take(causes[(n-23)/2])
		return
	}
	f.queueMerges(p, merge)
}

// queueMerges has the queue merge a pull request on the tip, unless it conflicts
// with what is there.
func (f *Forge) queueMerges(p *pull, merge func(head string) string) {
	if !p.merge(merge, "the queue") {
		f.Stopped++
		p.queued.take(outConflict)
	}
}

// queueCalms lets the queue and people do the next thing, and returns false if
// there is none: what a person took out is put in again, or is for a retry.
func (f *Forge) queueCalms(p *pull, merge func(head string) string) bool {
	if p.queued.in {
		f.queueMerges(p, merge)
		return true
	}
	if p.queued.cause == outOther && f.reopens {
		p.queued.put()
		return true
	}
	return false
}
