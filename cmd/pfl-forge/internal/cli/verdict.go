package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// verdict returns the exit code for an error of a command, and the message to print, which
// is empty if everything was said.
func verdict(ctx context.Context, called *cobra.Command, err error) (kit.Exit, string) {
	if code, ok := errors.AsType[kit.Exit](err); ok {
		return code, ""
	}
	if errors.Is(context.Cause(ctx), kit.ErrInterrupted) {
		return kit.ExitInterrupted, "interrupted"
	}
	message, excluded := inWords(strings.TrimSpace(err.Error()))
	var usage kit.UsageError
	if excluded || errors.As(err, &usage) || isCobraUsage(message) {
		message += "\nsee " + called.CommandPath() + " --help"
	}
	return kit.ExitError, message
}

// isCobraUsage reports whether a message is of a mistake in the command line that cobra
// itself finds.
func isCobraUsage(message string) bool {
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand", "required flag", "flag needs an argument", "invalid argument"} {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return false
}

// flagError returns the mistake in a flag in the words of the command line, not in those of
// the library that parses it.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); !cmd.HasParent() && len(args) > 0 {
		return kit.KnownCommand(cmd, args) // a flag of it is unknown because it is
	}
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return kit.Usage(err)
	}
	what, _, _ := strings.Cut(err.Error(), ": strconv.")
	switch {
	case number.Func == "ParseBool":
		return kit.Usage(fmt.Errorf("%s: can be true or false", what))
	case errors.Is(number, strconv.ErrRange):
		return kit.Usage(fmt.Errorf("%s: is out of range", what))
	}
	return kit.Usage(fmt.Errorf("%s: is not a number", what))
}

var together = pattern.New(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// inWords rewrites cobra's message about flags that exclude each other. It is false, and
// the message as it was, for any other one.
func inWords(message string) (string, bool) {
	found := together.FindStringSubmatch(message)
	if found == nil {
		return message, false
	}
	return "--" + strings.Join(strings.Fields(found[1]), " and --") + " cannot be given together", true
}
