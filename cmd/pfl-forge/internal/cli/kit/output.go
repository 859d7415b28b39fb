package kit

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// OutputFlag adds the flag -o, which chooses how a command prints its data.
func OutputFlag(cmd *cobra.Command, format *render.Format) {
	*format = render.Table
	cmd.Flags().VarP(format, "output", "o", strings.Join(render.Formats(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(render.Formats(), cobra.ShellCompDirectiveNoFileComp))
}

// Print prints the answer of a command in the format that was chosen: the document for
// programs; with -o name the names, one a line; and otherwise the text for a person, which
// the function prints. A command whose names are nil has no -o name, and prints the text.
func (a *App) Print(format render.Format, document any, names []string, text func() error) error {
	switch {
	case format.Data():
		return format.Write(a.Out, document)
	case format == render.Name && names != nil:
		for _, name := range names {
			if _, err := fmt.Fprintln(a.Out, name); err != nil {
				return err
			}
		}
		return nil
	}
	return text()
}

// Names returns the lines that -o name prints for a list. It is never nil.
func Names[T any](list []T, name func(*T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = name(&list[i])
	}
	return names
}

// Table prints columns to standard output, as wide as its terminal.
func (a *App) Table(columns *render.Columns) error {
	return columns.Write(a.Out, Width(a.Out), a.Style(a.Out))
}
