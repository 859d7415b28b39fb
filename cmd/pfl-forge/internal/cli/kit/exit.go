package kit

import (
	"errors"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
)

// Exit is an exit code. As an error it ends the program with that code and prints
// nothing more: what there is to say was said.
type Exit int

// The exit codes of the program.
const (
	// ExitOK: the command did what was asked.
	ExitOK Exit = 0
	// ExitError: a mistake in the command line, or something is wrong here.
	ExitError Exit = 1
	// ExitFailed: an intent is blocked or ended with an error.
	ExitFailed Exit = 2
	// ExitWaiting: nothing failed, but a person is waited for: by an intent, or
	// by a file that was refused.
	ExitWaiting Exit = 3
	// ExitInterrupted: it was interrupted; work is kept, and the next run goes
	// on.
	ExitInterrupted Exit = 130
)

// Error returns no text, because an Exit is never printed.
func (e Exit) Error() string { return "" }

// ErrInterrupted is the cause with which the first Ctrl-C cancels a command's context.
var ErrInterrupted = errors.New("interrupted")

// AsInterrupt returns ExitInterrupted for Ctrl-C, whether it came as a signal or as a key
// of a terminal in raw mode, and any other error as it is.
func AsInterrupt(err error) error {
	if errors.Is(err, console.ErrInterrupted) || errors.Is(err, ErrInterrupted) {
		return ExitInterrupted
	}
	return err
}

// UsageError is a mistake in the command line. The root prints it with a hint to --help.
type UsageError struct{ error }

// Usage marks an error as a mistake in the command line.
func Usage(err error) error { return UsageError{err} }

// Unwrap returns the error that was marked.
func (e UsageError) Unwrap() error { return e.error }
