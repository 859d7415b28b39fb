package agent

import (
	"crypto/rand"
	"fmt"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Session names the session that a call begins or resumes. The zero value begins one
// that cannot be resumed.
type Session struct {
	// ID is a UUID that the caller chose before the session's first call. A back end
	// whose CLI chooses ids of its own keeps the mapping in the call's StateDir.
	ID string
	// Resume continues an earlier session; without its files the call fails as
	// FailLostSession. Without Resume, files that an earlier call left under this ID
	// are not used.
	Resume bool
}

// Sessions is implemented by back ends that store their sessions as files, so that
// these can be archived and restored on another machine.
type Sessions interface {
	// SessionFiles returns the regular files of a session, relative to the StateDir of
	// its calls; none if there is no such session. Written to the same paths below
	// another StateDir, on whatever machine, they let a call with Resume continue
	// there.
	SessionFiles(stateDir, id string) ([]string, error)
}

// uuid matches the names of sessions: UUIDs, which every CLI takes.
var uuid = pattern.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsSessionID reports whether s can name a session, and so be part of a path.
func IsSessionID(s string) bool { return uuid.MatchString(s) }

// NewSessionID returns a random UUID (version 4).
func NewSessionID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
