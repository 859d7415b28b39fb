package mergequeue

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// What lands was verified on exactly its parent. So a change whose base branch moves
// while it is verified is overtaken: it goes back to its place, and is tried again
// on the tip that it finds, as often as it takes. That spends no attempt, since it
// says nothing about the change, and there is no pause: the change lands in the
// first gap that is as long as a verify, and only if it is being verified then.
//
// The oldest goes first. Once it was overtaken a few times in a row, it has every second
// turn: its checks may take longer than those of others, which find a gap where it finds
// none. The other turns are of those that were overtaken least, the oldest first:
//
//	         overtaken                       overtaken, patience is exhausted
//	oldest -------------> oldest again  ...  ---------------------------------> another one, if there is one
//	   ^                                                                             |
//	   +-----------------------------------------------------------------------------+ however that ends
//
// So the oldest is never kept from the gap for longer than one merge, and
// everybody becomes the oldest in the end.

// patience is how often the oldest change is overtaken before others have turns as well.
const patience = 3

// turns says whose turn it is to be merged.
type turns struct{ *State }

// overtaken gives a change that the base branch has overtaken its place back,
// or drops it if it is not wanted any more.
func (t turns) overtaken(out *outbox.Messages, m *Merge) {
	if !t.isWanted(m) {
		t.close(out, &forge.MergeEnded{Task: m.Task, Number: m.Number, Failure: &forge.Failure{
			Reason: forge.FailKilled, Message: "the base branch moved while the change was verified, and nobody waits for it any more",
		}})
		return
	}
	q := t.putBack()
	q.Moves++
	t.Overtaken = q.ref()
}

// instead returns the index of the change whose turn it is although another one
// is the first that may be merged; -1 if it is that one's.
func (t turns) instead(first int) int {
	if first < 0 || t.Queued[first].ref() != t.Overtaken || t.Queued[first].Moves < patience {
		return -1
	}
	best := -1
	for i, q := range t.Queued {
		if i != first && t.mayMerge(q) && (best < 0 || q.Moves < t.Queued[best].Moves) {
			best = i
		}
	}
	return best
}

// isBusy reports whether the base branch moves faster than changes are verified,
// as far as those show that are merged next. What is tried on top of others then
// is in vain: these land on another tip than the one that it was tried on.
func (t turns) isBusy() bool {
	first := slices.IndexFunc(t.Queued, t.mayMerge)
	return first >= 0 && t.Queued[first].Moves >= patience || t.Current != nil && t.Current.Moves >= patience
}

// isWanted reports whether the task still asks for the merge that is under way.
func (t turns) isWanted(m *Merge) bool {
	return !m.Gone && t.task(m.Intent, m.Task).Number == m.Number
}

// putBack gives the change that is being merged its place in the queue back.
func (t turns) putBack() *Request {
	q := t.Current.Request
	q.Car = &Car{Claims: t.Current.Claim}
	t.Current = nil
	i, _ := slices.BinarySearchFunc(t.Queued, q.Order, func(o *Request, order int) int { return o.Order - order })
	t.Queued = slices.Insert(t.Queued, i, &q)
	return &q
}

// moved says in words how often the base branch has overtaken a change; nothing if it did not.
func (r *Request) moved() string {
	switch r.Moves {
	case 0:
		return ""
	case 1:
		return "; the base branch has moved once while it was verified"
	default:
		return fmt.Sprintf("; the base branch has moved %d times while it was verified", r.Moves)
	}
}
