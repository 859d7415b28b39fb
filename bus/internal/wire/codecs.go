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
	Events    = codec.Must[forge.Event](&forgev1.Event{})
	Commands  = codec.Must[forge.Command](&forgev1.Command{})
	Results   = codec.Must[forge.Result](&forgev1.Result{})
	Records   = codec.Must[forge.Record](&forgev1.Record{})
	summaries = codec.Must[forge.Summary](&forgev1.Summary{})
	Rulings   = codec.Must[forge.Ruling](&forgev1.Ruling{})
	Progress  = codec.Must[forge.Progress](&forgev1.Progress{})
)

func Garbage(message, format string, args ...any) error {
	return &GarbageError{Message: message, Err: fmt.Errorf(format, args...)}
}
