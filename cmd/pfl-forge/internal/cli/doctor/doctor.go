// Package doctor is the command doctor: it checks everything that a run needs,
// here or at an organisation's server.
//
// A check is a function that returns what it found, a finding or several (package diagnosis);
// examine lists them in their order. To add a check, write such a function and name it there.
//
// The checks of this machine are here (examine.go, agents.go, sandbox.go, store.go), and are left
// out with --server. Those of the server, its journals and the services are in package server.
//
// A check never ends the command: an error of its own is a finding, too, so
// that one thing that is wrong does not hide the others. Checks change nothing,
// but for --repair, which is in package server.
//
// Findings are printed to standard output, as lines or as a document. The exit code tells
// a script whether one of them is broken. The tests are doctor_test.go and
// auditlog_test.go of the package above, and the scripts of cmd/pfl-forge/testdata/script.
package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/diagnosis"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/doctor/server"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Command returns the command doctor.
// --repair is apart from all checks, and --yes without it has no effect.
func Command(a *kit.App) *cobra.Command {
	var format render.Format
	var deep, repairs, yes bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check that this machine has everything a run needs",
		Long: `Check that this machine has everything a run needs, or with --server which services run
there, and whether they serve the project. With --deep every journal of the project is read, and
compared with the base branch of the repository: the more there is, the longer it takes. The exit
code is 1 if something does not work.

With --repair it looks at the journals alone, and offers to skip a last message that this version cannot read:
one that only a newer version understands, or that no runner wrote. Its bytes stay where they are.`,
		Args: kit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if repairs {
				return server.Repair(cmd.Context(), a, yes)
			}
			return doctor(cmd.Context(), a, deep, format)
		},
	}
	cmd.Flags().BoolVar(&deep, "deep", false, "read all journals, and compare them with the base branch")
	cmd.Flags().BoolVar(&repairs, "repair", false, "offer to set aside what holds a journal up")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --repair: do so without asking")
	kit.OutputFlag(cmd, &format)
	return cmd
}

// doctor prints the findings of all checks. The exit code is ExitError if something is broken.
func doctor(ctx context.Context, a *kit.App, deep bool, format render.Format) error {
	found, replicas := examine(ctx, a, deep)
	if format.Data() {
		if err := format.Write(a.Out, server.Entries(found, replicas)); err != nil {
			return err
		}
	} else {
		printFindings(a, found)
		if err := server.PrintReplicas(a, replicas); err != nil {
			return err
		}
	}
	for _, f := range found {
		if f.Health == diagnosis.Broken {
			return kit.ExitError
		}
	}
	return nil
}

// printFindings prints findings, each with its hint below.
// A finding is one line, whatever its detail contains, so that lines can be counted and searched.
func printFindings(a *kit.App, found []diagnosis.Finding) {
	style := a.Style(a.Out)
	for _, f := range found {
		mark := fmt.Sprintf("%-4s", f.Health)
		switch f.Health {
		case diagnosis.Healthy:
			mark = style.Good(mark)
		case diagnosis.Warning:
			mark = style.Attention(mark)
		case diagnosis.Broken:
			mark = style.Bad(mark)
		}
		fmt.Fprintf(a.Out, "%s  %-13s %s\n", mark, f.Check, term.Line(f.Detail))
		if f.Hint != "" {
			fmt.Fprintf(a.Out, "%s\n", kit.Indent("> "+term.Line(f.Hint), strings.Repeat(" ", 20)))
		}
	}
}
