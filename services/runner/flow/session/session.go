// Package session keeps the names of agents' sessions. A session's name is in
// the journal before any process knows it, so that the next attempt of a step
// can resume it, whichever worker carries that out.
package session

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Session is the newest session about one step. The zero value has not begun.
type Session struct {
	// Number counts the sessions about the step.
	Number int
	// ID is empty where no agent is called.
	ID string
	// Begun says that some attempt was in the session, so the next one resumes
	// it.
	Begun bool
}

// Names makes the names of an intent's sessions.
type Names struct {
	Key forge.Key
	// Created is the time at which the intent was made: one that is made again
	// under the same name has other sessions.
	Created time.Time
	// None says that the steps call no agent: a recipe does the work.
	None bool
}

// Start begins the next session about a step of a task, or, without a task, of
// the whole intent.
func (s *Session) Start(n Names, task forge.TaskID, step forge.Step) {
	s.Number++
	s.Begun = false
	s.ID = ""
	if !n.None {
		s.ID = forge.NewSessionID(n.Key, n.Created, task, step, s.Number)
	}
}

// Reported notes the session that an attempt was in. Another one than this,
// which has taken its place meanwhile, changes nothing.
func (s *Session) Reported(id string) {
	if s.ID != "" && id == s.ID {
		s.Begun = true
	}
}

// Assign makes a command's attempt take place in the session.
func (s *Session) Assign(c *forge.Command) { c.Session, c.Resume = s.ID, s.Begun }
