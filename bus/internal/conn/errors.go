package conn

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrConflict says that a machine's journal went on since it was read.
var ErrConflict = errors.New("the journal has a newer record")

// ErrNotFound says that a machine has no journal.
var ErrNotFound = errors.New("not found")

// RetryError and TerminateError are the errors by which a handler decides on redelivery.
type RetryError struct {
	After time.Duration
	err   error
}

func (e *RetryError) Error() string { return e.err.Error() }
func (e *RetryError) Unwrap() error { return e.err }

// TerminateError puts a message among the dead letters; see Terminate.
type TerminateError struct{ Reason string }

func (e *TerminateError) Error() string { return e.Reason }

// Retry is returned by a handler to have a message delivered again after a
// while, as often as it takes: the message is not at fault.
func Retry(after time.Duration, err error) error { return &RetryError{after, err} }

// Terminate is returned by a handler to put a message among the dead letters.
func Terminate(reason string) error { return &TerminateError{reason} }

// WrongSequence reports whether a publish was refused because its subject's
// last sequence is another one. settled is false when that is a message that is
// still on its way and may yet fail.
func WrongSequence(err error) (refused, settled bool) {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false, false
	}
	settled = api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
	return settled || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant, settled
}
