package scheduler

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// stoppedByPerson reports whether an intent ended because a person wanted that.
func stoppedByPerson(s forge.Status) bool {
	return s == forge.StatusCancelled || s == forge.StatusRejected
}

// connectChildren admits the children of an intent that wait for its plan, and
// tells it how far each of them in the plan is.
func (s *State) connectChildren(out *outbox.Messages, id forge.IntentID, fillIn FillIn) {
	s.admitChildren(out, id, fillIn)
	for _, c := range s.Intents[id].Children {
		child := s.Intents[c]
		if child == nil || child.Parent != id {
			continue
		}
		s.sendToParent(out, c)
	}
}

// admitChildren admits the children of an intent that wait for its plan. One of an earlier
// plan may not be in the new one; it would wait for ever.
func (s *State) admitChildren(out *outbox.Messages, id forge.IntentID, fillIn FillIn) {
	for _, c := range s.Active {
		if child := s.Intents[c]; child.Parent == id && child.Status == forge.StatusProposed {
			s.admit(out, c, child, fillIn)
		}
	}
}

// breakCycle tells the first intent on a path that waits for the next one by its
// own plan that it does so in vain. A parent waits for its children by no plan of
// its own.
func (s *State) breakCycle(out *outbox.Messages, path []forge.IntentID) {
	for i := 0; i+1 < len(path); i++ {
		in := s.active(path[i])
		if in != nil && slices.Contains(in.DependsOn, path[i+1]) && !slices.Contains(in.Children, path[i+1]) {
			round := append(slices.Clone(path[i:]), path[1:i+1]...)
			s.sendDependency(out, path[i], forge.DependencyEnded{Intent: path[i+1], Cycle: round})
			return
		}
	}
}

// isExpected reports whether an intent is the child of an active one. Such an
// intent may not have entered yet.
func (s *State) isExpected(id forge.IntentID) bool {
	return slices.ContainsFunc(s.Active, func(a forge.IntentID) bool { return slices.Contains(s.Intents[a].Children, id) })
}

// maxGenerations bounds how far IsPart looks; a plan is not divided as often (policy.max_depth).
const maxGenerations = 32

// IsPart reports whether an intent is another one, or a part of its plan, or of
// the plan of such a part.
func (s *State) IsPart(id, of forge.IntentID) bool {
	for range maxGenerations {
		in := s.Intents[id]
		if id == of || in == nil {
			return id == of && of != ""
		}
		id = in.Parent
	}
	return false
}

// sendToParent tells the parent of an intent how far the intent is.
func (s *State) sendToParent(out *outbox.Messages, id forge.IntentID) {
	in := s.Intents[id]
	if in == nil || in.Parent == "" || s.Intents[in.Parent] == nil {
		return
	}
	c := forge.ChildChanged{Intent: id, Run: in.Run, Status: in.Status}
	if !in.Active {
		c.Number = in.Ends
	}
	out.Add(in.Parent, fmt.Sprintf("part/%s/%d/%d", id, c.Run, c.Number), &c)
}

// cancelChildren cancels the active children of an intent.
func (s *State) cancelChildren(out *outbox.Messages, id forge.IntentID) {
	for _, c := range s.Active {
		if child := s.Intents[c]; child.Parent == id {
			s.cancel(out, c, child)
		}
	}
}

// cancelReason says for a person why an intent is to be cancelled; empty if it is
// not.
func (s *State) cancelReason(in *Intent) string {
	if p := s.Intents[in.Parent]; p != nil && in.Parent != "" && stoppedByPerson(p.Status) {
		return fmt.Sprintf("its parent %q was %s", in.Parent, p.Status)
	}
	return in.CancelReason
}

// cancel cancels the run of an intent, for its parent or for all of the
// project.
func (s *State) cancel(out *outbox.Messages, id forge.IntentID, in *Intent) {
	out.Add(id, fmt.Sprintf("cancel/%s/%d", id, in.Run), &forge.Cancel{Reason: s.cancelReason(in)})
}
