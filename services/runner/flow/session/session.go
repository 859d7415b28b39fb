// Package session keeps the names of agents' sessions. A session's name is in
// the journal before any process knows it, so that the next attempt of a step
// can resume it, whichever worker carries that out.
package session

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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
		s.ID = NewID(n.Key, n.Created, task, step, s.Number)
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

// NewID names the nth conversation of an intent's step with an agent: a
// UUID that is the same whenever it is asked for, so that it is in the journal
// before any process knows it. An intent that is deleted and made again has
// others, because created differs.
func NewID(key forge.Key, created time.Time, task forge.TaskID, step forge.Step, n int) string {
	var name []byte
	for _, part := range []string{string(key.Project), string(key.Intent), string(task), string(step)} {
		name = append(append(name, part...), 0)
	}
	name = strconv.AppendInt(append(strconv.AppendInt(name, created.UnixNano(), 10), 0), int64(n), 10)
	sum := sha256.Sum256(name)
	b := sum[:16]
	b[6] = b[6]&0x0f | 0x80 // version 8: made by a scheme of one's own (RFC 9562)
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
