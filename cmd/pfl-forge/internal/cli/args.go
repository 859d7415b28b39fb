package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func missing(what string) error { return fmt.Errorf("%s is missing", what) }

func surplus(arg string) error { return fmt.Errorf("%q is one argument too many", arg) }

// noArgs refuses any argument.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{surplus(args[0])}
	}
	return nil
}

// knownCommand refuses what is no command, with those that may have been meant.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return usageError{err}
}
