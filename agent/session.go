package agent

import (
	"crypto/rand"
	"fmt"
	"regexp"
)

// Session names a conversation. With Resume the agent goes on where it was.
// The ID is a UUID that the caller chose before the first call; a back end whose CLI
// chooses its own keeps the mapping in the call's StateDir. An empty ID is a
// conversation that nobody goes on with.
type Session struct {
	ID     string
	Resume bool
}

// Sessions is what a back end offers whose conversations are files, so that they can
// be kept, and gone on with elsewhere.
type Sessions interface {
	// SessionFiles returns the regular files that a conversation consists of, relative
	// to the StateDir of its calls. Written to the same paths below another StateDir, on
	// whatever machine, they let a call with Resume go on there. There are none if
	// there is no such conversation.
	SessionFiles(stateDir, id string) ([]string, error)
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsSessionID reports whether s can name a session, and so be part of a path.
func IsSessionID(s string) bool { return uuid.MatchString(s) }

// NewSessionID returns an id for a new session.
func NewSessionID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
