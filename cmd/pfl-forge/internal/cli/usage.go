package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// flagError says what is wrong with a flag in the words of the command line, not in
// those of the library that reads it.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); !cmd.HasParent() && len(args) > 0 {
		return knownCommand(cmd, args) // a flag of it is unknown because it is
	}
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return usageError{err}
	}
	what, _, _ := strings.Cut(err.Error(), ": strconv.")
	switch {
	case number.Func == "ParseBool":
		return usageError{fmt.Errorf("%s: can be true or false", what)}
	case errors.Is(number, strconv.ErrRange):
		return usageError{fmt.Errorf("%s: is out of range", what)}
	}
	return usageError{fmt.Errorf("%s: is no number", what)}
}

var together = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)

// inWords rewrites what cobra says of flags that exclude each other.
func inWords(message string) (string, bool) {
	found := together.FindStringSubmatch(message)
	if found == nil {
		return message, false
	}
	return "--" + strings.Join(strings.Fields(found[1]), " and --") + " cannot be given together", true
}
