// Package admin is the commands about the installation itself: doctor checks everything
// that a run needs, init prepares a repository, version says what is running.
//
// A check of doctor is a function that returns what it found, a finding or several; examine
// lists them in their order. To add a check, write such a function and name it there.
//
// doctor has three groups of checks. Those of this machine (examine.go, agents.go, sandbox.go, store.go) are left out
// with --server. Those of the server (server.go, journals.go) run for a repository's own and for an organisation's.
// Those of services (services.go, executors.go) ask a runner which replicas are up. deep.go has the slow ones of
// --deep.
//
// A check never ends the command: an error of its own is a finding, too, so that one thing that is wrong does not hide
// the others. Checks change nothing, but for --repair, which is in journals.go.
//
// Findings are printed to standard output, as lines or as a document. The exit code tells a script whether one of them
// is broken. The tests are doctor_test.go and auditlog_test.go of the package above, and the scripts of
// cmd/pfl-forge/testdata/script.
package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// health is the outcome of a check.
// Only broken counts for the exit code.
type health string

const (
	healthy health = "ok"
	warning health = "warn" // works, but look at it
	broken  health = "fail" // does not work
)

// finding is the outcome of a check with its details, as programs read it.
// Check names it in one word or two, and is the same whatever was found. Detail says what was found, and may hold text
// of others, which is made safe when it is printed. Hint says what a person can do; it is empty where there is nothing
// to do. Scripts read these, so that the names of fields and checks stay.
type finding struct {
	Check  string `json:"check"            yaml:"check"`
	Health health `json:"health"           yaml:"health"`
	Detail string `json:"detail,omitempty" yaml:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"   yaml:"hint,omitempty"`
}

// DoctorCommand returns the command doctor.
// --repair is apart from all checks, and --yes without it has no effect.
func DoctorCommand(a *kit.App) *cobra.Command {
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
				return repair(cmd.Context(), a, yes)
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
		if err := format.Write(a.Out, entries(found, replicas)); err != nil {
			return err
		}
	} else {
		printFindings(a, found)
		if err := printReplicas(a, replicas); err != nil {
			return err
		}
	}
	for _, f := range found {
		if f.Health == broken {
			return kit.ExitError
		}
	}
	return nil
}

// printFindings prints findings, each with its hint below.
// A finding is one line, whatever its detail contains, so that lines can be counted and searched.
func printFindings(a *kit.App, found []finding) {
	style := a.Style(a.Out)
	for _, f := range found {
		mark := fmt.Sprintf("%-4s", f.Health)
		switch f.Health {
		case healthy:
			mark = style.Good(mark)
		case warning:
			mark = style.Attention(mark)
		case broken:
			mark = style.Bad(mark)
		}
		fmt.Fprintf(a.Out, "%s  %-13s %s\n", mark, f.Check, term.Line(f.Detail))
		if f.Hint != "" {
			fmt.Fprintf(a.Out, "%s\n", kit.Indent("> "+term.Line(f.Hint), strings.Repeat(" ", 20)))
		}
	}
}
