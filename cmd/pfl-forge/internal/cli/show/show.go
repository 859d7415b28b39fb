package show

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/document"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/goalview"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// printLoop prints the criteria of an intent, and how far it is with them if it is a
// goal.
func printLoop(a *kit.App, d *Intent) error {
	if d.Loop == nil {
		if len(d.Criteria) > 0 {
			a.Heading("criteria")
		}
		for _, c := range d.Criteria {
			fmt.Fprintln(a.Out, kit.Indent(kit.Safe(c), "  "))
		}
		return nil
	}
	a.Heading("criteria")
	document.PrintCriteria(a, d.Loop.Criteria, d.Loop.Judgment != nil)
	return goalview.PrintIterations(a, d.Loop)
}
