package scheduler

import (
	"fmt"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// FillIn fills in the facts from the other parts of the project that an intent is
// told when it is admitted: budget, earlier runs, knowledge, observations.
type FillIn func(*Intent, *forge.RunAdmitted)

// AdmitRun keeps that a run of an intent asks for admission. It is ignored when that
// run is known; then Admit repeats the answers, if the run is active.
func (s *State) AdmitRun(id forge.IntentID, e *forge.AdmitRun) (forge.Decision, error) {
	in := s.Intents[id]
	next := &Intent{
		Run: e.Run, Active: true, Status: forge.StatusProposed, Title: e.Title, About: e.About, Type: e.Type,
		Parent: e.Parent, Source: e.Source, Generation: e.Generation, Goal: e.Goal, Requesters: e.Requesters,
	}
	if in != nil {
		switch {
		case e.Run < in.Run, e.Run == in.Run && !in.Active:
			return rule.Ignore("run %d of %q is over", e.Run, id)
		case e.Run == in.Run:
			return rule.Ignore("%q is admitted already", id)
		}
		next.Ends = in.Ends
	}
	s.keep(id, next)
	return forge.Applied, nil
}

// Admit tells the parent of an active intent that it has begun, and lets it begin.
func (s *State) Admit(out *outbox.Messages, id forge.IntentID, fillIn FillIn) {
	s.sendToParent(out, id)
	s.admit(out, id, s.Intents[id], fillIn)
}

// admit lets an intent begin. A child waits until its
// parent has a plan, so that its siblings are known, or has ended without one, and does
// not begin at all if a person stopped the parent.
func (s *State) admit(out *outbox.Messages, id forge.IntentID, in *Intent, fillIn FillIn) {
	if s.cancelReason(in) != "" {
		s.cancel(out, id, in)
		return
	}
	if p := s.active(in.Parent); p != nil && p.Status == forge.StatusProposed {
		return
	}
	a := forge.RunAdmitted{Run: in.Run}
	if s.Paused {
		a.Paused = s.Pauses
	} else {
		a.Resumed = s.Pauses
	}
	fillIn(in, &a)
	out.Add(id, fmt.Sprintf("admitted/%s/%d", id, in.Run), &a)
}

// RunPlanned keeps an intent's plan. It is ignored when the plan is known;
// then Connect repeats the answers.
func (s *State) RunPlanned(id forge.IntentID, p *forge.RunPlanned) (forge.Decision, error) {
	if !s.IsActive(id, p.Run) {
		return rule.Ignore("run %d of %q is not active", p.Run, id)
	}
	in := s.Intents[id]
	if in.Status != forge.StatusProposed {
		return rule.Ignore("the plan of %q is known already", id)
	}
	in.Status = forge.StatusApproved
	in.DependsOn, in.Children = p.DependsOn, p.Children
	return forge.Applied, nil
}

// Connect admits the children of an intent, and answers for each intent that it
// depends on: at once if that one has ended, does not exist or waits for this one;
// otherwise when it ends.
func (s *State) Connect(out *outbox.Messages, id forge.IntentID, p *forge.RunPlanned, fillIn FillIn) {
	s.connectChildren(out, id, fillIn)
	for _, d := range p.DependsOn {
		if cycle := s.cycle(id, d); cycle != nil {
			s.sendDependency(out, id, forge.DependencyEnded{Intent: d, Cycle: cycle})
		} else if in := s.Intents[d]; in == nil && s.isExpected(d) {
			continue
		} else if in == nil {
			s.sendDependency(out, id, forge.DependencyEnded{Intent: d})
		} else if !in.Active {
			s.sendDependency(out, id, forge.DependencyEnded{Intent: d, Status: in.Status})
		}
	}
	for _, c := range p.Children {
		s.breakCycle(out, s.cycle(id, c))
	}
}

// sendDependency tells an intent how one ended that it depends on.
func (s *State) sendDependency(out *outbox.Messages, id forge.IntentID, d forge.DependencyEnded) {
	d.Run = s.Intents[id].Run
	out.Add(id, fmt.Sprintf("dependency/%s/%d/%s", id, d.Run, d.Intent), &d)
}

// cycle returns the path from id over d back to id; nil if there is none.
func (s *State) cycle(id, d forge.IntentID) []forge.IntentID {
	seen := map[forge.IntentID]bool{}
	var path func(at forge.IntentID) []forge.IntentID
	path = func(at forge.IntentID) []forge.IntentID {
		if at == id {
			return []forge.IntentID{at}
		}
		in := s.active(at)
		if in == nil || seen[at] {
			return nil
		}
		seen[at] = true
		for _, next := range slices.Concat(in.DependsOn, in.Children) {
			if p := path(next); p != nil {
				return append([]forge.IntentID{at}, p...)
			}
		}
		return nil
	}
	if p := path(d); p != nil {
		return append([]forge.IntentID{id}, p...)
	}
	return nil
}

// RunEnded keeps that a run ended. When that is known already, those that wait for it
// are told again.
func (s *State) RunEnded(out *outbox.Messages, id forge.IntentID, e *forge.RunEnded) (forge.Decision, error) {
	in := s.Intents[id]
	if in == nil {
		in = &Intent{} // it ended before its entry arrived, which is of no use any more
	}
	if e.Run < in.Run || e.Number <= in.Ends {
		if e.Run == in.Run && !in.Active {
			s.wake(out, id, in.Status)
			s.free(out, id)
			s.sendToParent(out, id)
		}
		return rule.Ignore("run %d of %q is over already", e.Run, id)
	}
	end := &Intent{
		Run: e.Run, Ends: e.Number, Status: e.Status, Type: in.Type, Parent: e.Parent,
		Source: in.Source, Generation: in.Generation,
	}
	if e.Status == forge.StatusBlocked {
		end.DependsOn = in.DependsOn
	}
	s.keep(id, end)
	return forge.Applied, nil
}

// SendToFamily tells the parent of an intent that it ended. Its children stop if a person
// stopped it; otherwise those that waited for its plan begin.
func (s *State) SendToFamily(out *outbox.Messages, id forge.IntentID, fillIn FillIn) {
	if stoppedByPerson(s.Intents[id].Status) {
		s.cancelChildren(out, id)
	} else {
		s.admitChildren(out, id, fillIn)
	}
	s.sendToParent(out, id)
}

// Wake tells every intent that depends on one that has ended, by id, and frees those that
// were blocked by it.
func (s *State) Wake(out *outbox.Messages, id forge.IntentID) {
	s.wake(out, id, s.Intents[id].Status)
	s.free(out, id)
}

// free tells the intents that ended blocked that one they depend on is done after all: those
// that depend on an intent that got done, or the intent itself if it is blocked although what
// it depends on got done meanwhile. An intent knows itself which one has blocked it.
func (s *State) free(out *outbox.Messages, id forge.IntentID) {
	tell := func(blocked, done forge.IntentID) {
		run := s.Intents[blocked].Run
		out.Add(blocked, fmt.Sprintf("freed/%s/%d/%s", blocked, run, done),
			&forge.DependencyEnded{Run: run, Intent: done, Status: forge.StatusDone})
	}
	in := s.Intents[id]
	switch {
	case in == nil:
	case in.Status == forge.StatusDone:
		for _, other := range s.Blocked {
			if slices.Contains(s.Intents[other].DependsOn, id) {
				tell(other, id)
			}
		}
	case in.Status == forge.StatusBlocked:
		for _, d := range in.DependsOn {
			if on := s.Intents[d]; on != nil && !on.Active && on.Status == forge.StatusDone {
				tell(id, d)
			}
		}
	}
}

// wake tells every active intent that depends on one, by id, that it has this
// status.
func (s *State) wake(out *outbox.Messages, id forge.IntentID, status forge.Status) {
	for _, other := range s.Active {
		if slices.Contains(s.Intents[other].DependsOn, id) {
			s.sendDependency(out, other, forge.DependencyEnded{Intent: id, Status: status})
		}
	}
}
