package bus

import (
	"time"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// UnknownError is returned for a message that says something this version does not know.
// The message comes from a newer version.
type UnknownError = wire.UnknownError

// TooLargeError is returned for a message that is larger than the server takes. Nothing
// was stored.
type TooLargeError = conn.TooLargeError

// ErrConflict is returned when a machine's journal went on since it was read. Nothing was
// written: load again, and decide again.
var ErrConflict = conn.ErrConflict

// ErrNotFound is returned for a machine without a journal, and for an object that is not
// there.
var ErrNotFound = conn.ErrNotFound

// Retry returns an error with which a handler of events or commands has its message
// delivered again after a while, as often as it takes: the message is not at fault.
func Retry(after time.Duration, err error) error { return conn.Retry(after, err) }

// Terminate returns an error with which a handler of events or commands puts its message
// among the dead letters.
func Terminate(reason string) error { return conn.Terminate(reason) }
