package codec

import (
	"errors"
	"fmt"
)

// UnknownError says that a message is well formed but says something that this
// version does not know: it comes from a newer one, or from a mistaken one.
type UnknownError struct {
	Message string // the message's type
	What    string // what is unknown
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s holds something unknown: %s", e.Message, e.What)
}

// GarbageError says that bytes are no message.
type GarbageError struct {
	Message string // the type that was expected
	Err     error
}

func (e *GarbageError) Error() string {
	return fmt.Sprintf("not a valid %s: %v", e.Message, e.Err)
}

func (e *GarbageError) Unwrap() error { return e.Err }

// fieldError adds where an error is to it.
type fieldError struct {
	name string
	err  error
}

func (e *fieldError) Error() string {
	if _, ok := errors.AsType[*fieldError](e.err); ok {
		return e.name + "." + e.err.Error()
	}
	return e.name + ": " + e.err.Error()
}

func (e *fieldError) Unwrap() error { return e.err }
