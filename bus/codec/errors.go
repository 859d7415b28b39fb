package codec

import (
	"errors"
	"fmt"
)

// UnknownError says that a message is well formed but holds a field or a value
// that this version does not know: it comes from a newer version, or from a
// mistaken sender. The message may be tried again after an update.
type UnknownError struct {
	// Message is the name of the message's type, without its package.
	Message string
	// What names the field or value that is unknown, for people.
	What string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s holds something unknown: %s", e.Message, e.What)
}

// GarbageError says that bytes are no message of the expected type, whatever
// the version. It is final for these bytes.
type GarbageError struct {
	// Message is the name of the type that was expected, without its package.
	Message string
	// Err is the reason; it names the field where one is at fault.
	Err error
}

func (e *GarbageError) Error() string {
	return fmt.Sprintf("not a valid %s: %v", e.Message, e.Err)
}

func (e *GarbageError) Unwrap() error { return e.Err }

// fieldError adds a field's name, or an element's index, to the error of its
// value. Nested ones print as a path: "intent.tasks.2.title: not UTF-8".
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
