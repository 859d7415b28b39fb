package document

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// PrintChecks prints a line for each run, and the output of those that did not pass.
func PrintChecks(a *kit.App, list []Check) {
	for _, c := range list {
		name := c.ID
		if c.Name != "" {
			name += " " + c.Name
		}
		state := "passed"
		if !c.Passed {
			state = fmt.Sprintf("failed, exit status %d", c.ExitCode)
		}
		took := render.Took(time.Duration(c.Seconds * float64(time.Second)))
		fmt.Fprintf(a.Out, "  %s: %s (%s): %s\n", term.Line(name), state, took, term.Short(term.Line(c.Command), 100))
		if output := strings.TrimSpace(kit.Safe(c.Output)); !c.Passed && output != "" {
			fmt.Fprintln(a.Out, kit.Indent(output, "      "))
		}
	}
}
