package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/console"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
)

// The exit codes.
const (
	exitOK          = 0   // done
	exitError       = 1   // usage, or something is wrong here
	exitFailed      = 2   // an intent is blocked or ended with an error
	exitWaiting     = 3   // nothing failed, but something waits for a person: an intent, or a file that was refused
	exitInterrupted = 130 // work is kept, the next run goes on
)

var errInterrupted = errors.New("interrupted")

// exit is an error that says which code to exit with; what there is to say was said.
type exit int

func (e exit) Error() string { return "" }

// usageError is a mistake in the command line.
type usageError struct{ error }

// verdict returns the exit code of an error, and what to say.
func verdict(ctx context.Context, called *cobra.Command, err error) (int, string) {
	if code, ok := errors.AsType[exit](err); ok {
		return int(code), ""
	}
	if errors.Is(context.Cause(ctx), errInterrupted) {
		return exitInterrupted, "interrupted"
	}
	message, excluded := inWords(strings.TrimSpace(err.Error()))
	var usage usageError
	if excluded || errors.As(err, &usage) || isCobraUsage(message) {
		message += "\nsee " + called.CommandPath() + " --help"
	}
	return exitError, message
}

// isCobraUsage recognises the mistakes that cobra itself finds.
func isCobraUsage(message string) bool {
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "flag needs an argument", "invalid argument"} {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return false
}

// outcome returns the error that stands for the exit code of a run. It follows from
// how things stand, not from what this run did: run again, nothing having changed,
// gives the same.
func outcome(o *local.Outcome) error {
	if o.Interrupted {
		return exit(exitInterrupted)
	}
	code := exitOK
	if len(o.Problems) > 0 {
		code = exitWaiting
	}
	for i := range o.Intents {
		s := &o.Intents[i]
		switch {
		case s.Status.Failed():
			return exit(exitFailed)
		case s.Waiting != "":
			code = exitWaiting
		}
	}
	if code == exitOK {
		return nil
	}
	return exit(code)
}

// asInterrupt turns the end of a terminal's input into what Ctrl-C is elsewhere.
func asInterrupt(err error) error {
	if errors.Is(err, console.ErrInterrupted) || errors.Is(err, errInterrupted) {
		return exit(exitInterrupted)
	}
	return err
}
