package document

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Check is one run of a command of the project on one tree, as programs read it.
type Check struct {
	ID       string  `json:"id"               yaml:"id"`             // unique among those of a commit
	Name     string  `json:"name,omitempty"   yaml:"name,omitempty"` // of the check in pfl-forge.yaml
	Command  string  `json:"command"          yaml:"command"`
	Tree     string  `json:"tree"             yaml:"tree"`
	Passed   bool    `json:"passed"           yaml:"passed"`
	ExitCode int     `json:"exit_code"        yaml:"exit_code"` // -1 if it was ended
	Output   string  `json:"output,omitempty" yaml:"output,omitempty"`
	Seconds  float64 `json:"seconds"          yaml:"seconds"`
}

// ChecksOf returns the documents of runs.
func ChecksOf(runs []forge.CheckRun) []Check {
	var list []Check
	for _, r := range runs {
		list = append(list, Check{r.ID, r.Name, r.Command, r.Tree, r.Passed, r.ExitCode, r.Output, r.Duration.Seconds()})
	}
	return list
}

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
