package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// health is how a check ended.
type health string

const (
	healthy health = "ok"
	warning health = "warn" // works, but look at it
	broken  health = "fail" // does not work
)

// finding is what a check found, as programs read it.
type finding struct {
	Check  string `json:"check"            yaml:"check"`
	Health health `json:"health"           yaml:"health"`
	Detail string `json:"detail,omitempty" yaml:"detail,omitempty"`
	Hint   string `json:"hint,omitempty"   yaml:"hint,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check everything that a run needs",
		Long:  "Check everything that a run needs. The exit code is 1 if something does not work.",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), format) },
	}
	output(cmd, &format)
	return cmd
}

func (a *app) doctor(ctx context.Context, format render.Format) error {
	found := a.examine(ctx)
	if format.Data() {
		if err := format.Write(a.out, found); err != nil {
			return err
		}
	} else {
		a.printFindings(found)
	}
	for _, f := range found {
		if f.Health == broken {
			return exit(exitError)
		}
	}
	return nil
}

func (a *app) printFindings(found []finding) {
	style := a.style(a.out)
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
		fmt.Fprintf(a.out, "%s  %-13s %s\n", mark, f.Check, term.Line(f.Detail))
		if f.Hint != "" {
			fmt.Fprintf(a.out, "%s\n", indent("> "+term.Line(f.Hint), strings.Repeat(" ", 20)))
		}
	}
}
