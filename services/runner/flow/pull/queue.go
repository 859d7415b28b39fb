package pull

import (
	"cmp"

	"github.com/pfl-forge/pfl-forge"
)

// MarkDone keeps that what followed from all that was seen is done: the change is
// proposed anew, with a head that may be the same.
func (o *Ours) MarkDone(seen *forge.PullRequest, head string) {
	if o.Stuck = ""; seen != nil && o.out(seen) == QueueConflict && head == o.Head {
		o.Stuck = head
	}
	if seen != nil && seen.Queue != nil && seen.Queue.Out != "" {
		o.Settled = seen.Queue.Out
	}
}

// out returns why a pull request was taken out of the merge queue; empty if it was
// not, or if that is settled.
func (o *Ours) out(seen *forge.PullRequest) string {
	if q := seen.Queue; q != nil && !q.In && q.Out != "" && q.Out != o.Settled {
		return cmp.Or(q.Cause, QueueOther)
	}
	return ""
}

// isQueued reports whether the forge is about to merge what was proposed: what is
// behind in a way that the forge minds waits for us.
func isQueued(seen *forge.PullRequest) bool {
	return seen.Queue != nil && seen.Queue.In && !seen.Behind
}

// sameQueue reports whether two looks saw the same place in the merge queue.
func sameQueue(a, b *forge.PullQueue) bool { return a == b || a != nil && b != nil && *a == *b }
