package bus

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrConflict says that a machine's journal went on since it was read.
var ErrConflict = errors.New("the journal has a newer record")

// ErrNotFound says that a machine has no journal.
var ErrNotFound = errors.New("not found")

// retryError and terminateError are what a handler can return besides nil.
type retryError struct {
	after time.Duration
	err   error
}

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

type terminateError struct{ reason string }

func (e *terminateError) Error() string { return e.reason }

// Retry is returned by a handler to have a message delivered again after a
// while, as often as it takes: the message is not at fault.
func Retry(after time.Duration, err error) error { return &retryError{after, err} }

// Terminate is returned by a handler to put a message among the dead letters.
func Terminate(reason string) error { return &terminateError{reason} }

// wrongSequence reports whether a publish was refused because its subject's
// last sequence is another one. settled is false when that is a message that is
// still on its way and may yet fail.
func wrongSequence(err error) (refused, settled bool) {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false, false
	}
	settled = api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
	return settled || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant, settled
}
