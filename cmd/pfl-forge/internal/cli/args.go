package cli

import (
	"fmt"

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
