package kit

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge"
)

// Missing returns the error for something that a command needs and did not get.
func Missing(what string) error { return fmt.Errorf("%s is missing", what) }

// MissingID returns the error for the id of an intent that a command needs and
// did not get. It says where ids are listed.
func MissingID(what string) error {
	return fmt.Errorf("%w; `pfl-forge inbox` lists what waits for you, `pfl-forge status` everything", Missing(what))
}

// surplus returns the error for the first argument that a command has no use for.
func surplus(arg string) error { return fmt.Errorf("unexpected argument %q", arg) }

// NoArgs is the check of a command that takes no arguments.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(surplus(args[0]))
	}
	return nil
}

// KnownCommand is the check of a command that has nothing but subcommands. It refuses the
// name of one that does not exist, and names those that may have been meant.
func KnownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q", args[0])
	root.SuggestionsMinimumDistance = 2
	if near := root.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return Usage(err)
}

// IntentIDs parses every argument as the id of an intent.
func IntentIDs(args []string) ([]forge.IntentID, error) {
	ids := make([]forge.IntentID, len(args))
	for i, arg := range args {
		id, err := forge.ParseIntentID(arg)
		if err != nil {
			return nil, Usage(err)
		}
		ids[i] = id
	}
	return ids, nil
}

// AtLeast is the check of a command that takes n arguments or more; what names the one
// that is missing otherwise, such as "the id of an intent".
func AtLeast(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < n {
			return Usage(Missing(what))
		}
		return nil
	}
}

// Between is the check of a command that takes from least to most arguments; what names
// the one that is missing when there are fewer.
func Between(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := AtLeast(least, what)(cmd, args); err != nil {
			return err
		}
		if len(args) > most {
			return Usage(surplus(args[most]))
		}
		return nil
	}
}
