package wire

import (
	"fmt"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

// UnknownError says that a message says something that this version does not
// know; it comes from a newer one.
type UnknownError = codec.UnknownError

// GarbageError says that bytes are no message.
type GarbageError = codec.GarbageError

var (
	// Events is the codec of forge.Event.
	Events = codec.Must[forge.Event](&forgev1.Event{})
	// Commands is the codec of forge.Command.
	Commands = codec.Must[forge.Command](&forgev1.Command{})
	// Results is the codec of forge.Result.
	Results = codec.Must[forge.Result](&forgev1.Result{})
	// Records is the codec of forge.Record.
	Records = codec.Must[forge.Record](&forgev1.Record{})
	// Summaries is the codec of forge.Summary.
	Summaries = codec.Must[forge.Summary](&forgev1.Summary{})
	// Rulings is the codec of forge.Ruling.
	Rulings = codec.Must[forge.Ruling](&forgev1.Ruling{})
	// Progress is the codec of forge.Progress.
	Progress = codec.Must[forge.Progress](&forgev1.Progress{})
)

// Garbage returns a *GarbageError that says which message it is about, and why.
func Garbage(message, format string, args ...any) error {
	return &GarbageError{Message: message, Err: fmt.Errorf(format, args...)}
}
