package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Failure is the only error type that back ends return. Its message is sanitized, and
// says what to do next where that is known.
type Failure struct {
	forge.Failure
	// cause is the error that AsFailure was given; nil for other failures.
	cause error
}

func (f *Failure) Error() string { return string(f.Reason) + ": " + f.Message }

// Unwrap returns the error that the failure was made of; nil if it was made of none.
func (f *Failure) Unwrap() error { return f.cause }

// Fail returns a failure with this reason and a formatted message.
func Fail(reason forge.FailureReason, format string, args ...any) *Failure {
	msg := term.Sanitize(fmt.Sprintf(format, args...))
	return &Failure{Failure: forge.Failure{Reason: reason, Message: msg}}
}

// FailUntil returns a failure of a limit that ends at a known time. A zero time means
// that the end is not known.
func FailUntil(reason forge.FailureReason, until time.Time, format string, args ...any) *Failure {
	f := Fail(reason, format, args...)
	f.Until = until
	return f
}

// AsFailure returns err as a failure: nil for nil, a wrapped *Failure itself, the
// reason that fits for errors of package process and of ctx, and FailCrashed for
// anything else.
func AsFailure(err error) *Failure {
	f, ok := errors.AsType[*Failure](err)
	if err == nil || ok {
		return f
	}
	f = failureOf(err)
	f.cause = err
	return f
}

// failureOf is AsFailure for an error that is none yet.
func failureOf(err error) *Failure {
	switch {
	case errors.Is(err, process.ErrSandbox) && !process.Starved(err): // a lack of processes says nothing of sandboxes
		return Fail(forge.FailSandbox, "%v; see pfl-forge doctor for what this machine offers", err)
	case errors.Is(err, process.ErrWall):
		return Fail(forge.FailTimeout, "%v", err)
	case errors.Is(err, process.ErrIdle):
		return Fail(forge.FailIdle, "%v", err)
	case errors.Is(err, process.ErrOutput):
		return Fail(forge.FailOutputLimit, "%v", err)
	case errors.Is(err, process.ErrDisk):
		return Fail(forge.FailDiskLimit, "%v", err)
	case errors.Is(err, process.ErrLost):
		return Fail(forge.FailLost, "%v", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Fail(forge.FailKilled, "stopped: %v", err)
	}
	if _, missing := errors.AsType[*exec.Error](err); missing { // there is no such program, or it may not be executed
		return Fail(forge.FailMissingCLI, "%v", err)
	}
	return Fail(forge.FailCrashed, "%v", err)
}
