package claude

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// session is the conversation of a call: a new one under a preset id, or the
// file of one to go on with.
type session struct {
	id   string
	file string // to resume; empty for a new one
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// findSession returns the session that a call asks for. A new one whose id was
// used before gets another id: that call died, and its checkout with it.
func findSession(settings string, want agent.Session) (session, error) {
	if want.ID != "" && !uuid.MatchString(want.ID) {
		return session{}, agent.Fail(forge.FailLostSession, "session %q is none of this agent", want.ID)
	}
	file := ""
	if want.ID != "" {
		file = sessionFile(settings, want.ID)
	}
	switch {
	case want.Resume && file == "":
		return session{id: want.ID}, agent.Fail(forge.FailLostSession, "session %q is not on this replica any more", want.ID)
	case want.Resume:
		return session{id: want.ID, file: file}, nil
	case want.ID == "" || file != "":
		return session{id: NewSessionID()}, nil
	}
	return session{id: want.ID}, nil
}

func (s session) arguments() []string {
	if s.file != "" {
		return []string{"--resume", s.file} // a path works from any directory
	}
	return []string{"--session-id", s.id}
}

// SessionFile returns the path of a session's file below a call's StateDir, or
// "" if there is none.
func SessionFile(stateDir, id string) string {
	if !uuid.MatchString(id) {
		return ""
	}
	return sessionFile(filepath.Join(stateDir, "claude"), id)
}

func sessionFile(settings, id string) string {
	found, err := filepath.Glob(filepath.Join(escape(settings), "projects", "*", id+".jsonl"))
	if err != nil {
		return ""
	}
	for _, f := range found {
		if info, err := os.Lstat(f); err == nil && info.Mode().IsRegular() {
			return f
		}
	}
	return ""
}

var special = regexp.MustCompile(`[\\*?\[]`)

// escape makes a path that a glob takes literally.
func escape(path string) string { return special.ReplaceAllString(path, `\$0`) }

// NewSessionID returns an id for a new session.
func NewSessionID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
