package scheduler

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

// CancelAll cancels every active intent because a person wants it.
func (s *State) CancelAll(out *outbox.Messages, reason string) (forge.Decision, error) {
	if len(s.Active) == 0 {
		return rule.Refuse("nothing is in progress in the project")
	}
	if reason == "" {
		reason = "everything in the project was cancelled"
	}
	for _, id := range s.Active {
		in := s.Intents[id]
		in.CancelReason = reason
		s.cancel(out, id, in)
	}
	return forge.Applied, nil
}

// PauseAll pauses every active intent because a person wants it. Intents that
// begin later are told that the project is paused.
func (s *State) PauseAll(out *outbox.Messages) (forge.Decision, error) {
	if s.Paused {
		return rule.Ignore("the project is paused already")
	}
	s.Pauses++
	s.Paused = true
	s.Repeat(out)
	return forge.Applied, nil
}

// ResumeAll ends the pause of the project.
func (s *State) ResumeAll(out *outbox.Messages) (forge.Decision, error) {
	if !s.Paused {
		return rule.Refuse("the project is not paused")
	}
	s.Paused = false
	s.Repeat(out)
	return forge.Applied, nil
}

// Repeat sends every active intent the pause, resume or cancel that a person wants
// of the whole project. It makes no difference how often an intent is told.
func (s *State) Repeat(out *outbox.Messages) {
	for _, id := range s.Active {
		in := s.Intents[id]
		switch {
		case s.cancelReason(in) != "":
			s.cancel(out, id, in)
		case s.Paused:
			out.Add(id, fmt.Sprintf("pause/%s/%d", id, s.Pauses), &forge.Pause{Reason: forge.ProjectPaused, Number: s.Pauses})
		case s.Pauses > 0:
			out.Add(id, fmt.Sprintf("resume/%s/%d", id, s.Pauses), &forge.Resume{Number: s.Pauses})
		}
	}
}
