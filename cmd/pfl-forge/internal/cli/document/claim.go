package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// Claim is a requirement of a task or a criterion of a goal, with what the last verdict says of
// it. One that no verdict speaks of is not met, with no evidence and no confidence.
type Claim struct {
	// Number counts the requirements of a task, or the criteria of a goal, from 1.
	Number int `json:"number" yaml:"number"`
	// Text is the requirement or criterion as it was put.
	Text string `json:"text" yaml:"text"`

	// Met says that it is shown to be met: in the word of the reviewer or judge, and by evidence
	// that was found.
	Met bool `json:"is_met" yaml:"is_met"`
	// Confidence is the reviewer's or judge's, from 0 to 1.
	Confidence float64 `json:"confidence" yaml:"confidence"`

	// Note is the reviewer's or judge's own text.
	Note string `json:"note,omitempty" yaml:"note,omitempty"`

	// Unproven says why it does not count although it was said to be met.
	Unproven string `json:"unproven,omitempty" yaml:"unproven,omitempty"`
	// Evidence has the pieces that were cited, each with the result of its lookup.
	Evidence []Citation `json:"evidence" yaml:"evidence"`
	// Run is that of the command which decides the criterion; left out where a model answered.
	Run *Run `json:"run,omitempty" yaml:"run,omitempty"`
}

// Run is how a command ended that decides a criterion.
type Run struct {
	// Name is that of the project's check; left out for a command of the criterion's own.
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	// Command is the command line.
	Command string `json:"command" yaml:"command"`
	// Tree is the tree of the commit that it ran on.
	Tree string `json:"tree" yaml:"tree"`
	// ExitCode is -1 if it was ended because it overran a limit.
	ExitCode int `json:"exit_code" yaml:"exit_code"`
	// Duration is how long it ran, such as 1.2s.
	Duration string `json:"duration" yaml:"duration"`
	// Output is the end of what it printed.
	Output string `json:"output,omitempty" yaml:"output,omitempty"`
}

// Citation is one piece of evidence, with what code found of it.
type Citation struct {
	// Kind is command, file, diff or absence.
	Kind forge.CitationKind `json:"kind" yaml:"kind"`
	// Ref is path:line, path:from-to, the name or id of a run, or a path.
	Ref string `json:"ref" yaml:"ref"`
	// Quote is the text that stands there, or that must not.
	Quote string `json:"quote,omitempty" yaml:"quote,omitempty"`
	// Resolved says that it was found as it is cited.
	Resolved bool `json:"resolved" yaml:"resolved"`
	// Reason says why it was not.
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"`
	// Unchanged says that it was so before the change, too.
	Unchanged bool `json:"unchanged,omitempty" yaml:"unchanged,omitempty"`
}

// ClaimsOf returns claims as programs read them.
func ClaimsOf(claims []forge.Claim) []Claim {
	list := make([]Claim, len(claims))
	for i := range claims {
		list[i] = claimOf(&claims[i])
	}
	return list
}

// claimOf returns one claim.
func claimOf(c *forge.Claim) Claim {
	d := Claim{
		Number: c.Number, Text: c.Text, Met: c.Counts(), Confidence: c.Confidence, Note: c.Note, Unproven: c.Unproven,
		Evidence: make([]Citation, len(c.Evidence)),
	}
	for i, e := range c.Evidence {
		d.Evidence[i] = Citation(e)
	}
	if r := c.Run; r != nil {
		d.Run = &Run{Name: r.Name, Command: r.Command, Tree: r.Tree, ExitCode: r.ExitCode, Duration: r.Duration.String(), Output: r.Output}
	}
	return d
}

// printClaim prints a claim with its evidence: a line for each piece, and why one was not found.
func printClaim(a *kit.App, c *Claim) {
	style := a.Style(a.Out)
	text := kit.Safe(c.Text)
	if c.Run == nil {
		text += fmt.Sprintf(" (confidence %.2f)", c.Confidence)
	}
	if c.Met {
		fmt.Fprintln(a.Out, hanging("  "+style.Good("met")+"      ", text))
	} else {
		fmt.Fprintln(a.Out, hanging("  "+style.Bad("not met")+"  ", text))
	}
	below := func(text string) {
		if text = kit.Safe(text); text != "" {
			fmt.Fprintln(a.Out, style.Faint(kit.Indent(text, strings.Repeat(" ", criterionIndent))))
		}
	}
	// A command's word needs no confidence; what it printed matters where it failed.
	if c.Run != nil {
		below(c.Note + " in " + c.Run.Duration + ": " + c.Run.Command)
		if !c.Met {
			below(c.Run.Output)
		}
		return
	}
	below(c.Note)
	for i := range c.Evidence {
		e := &c.Evidence[i]
		line := string(e.Kind) + " " + e.Ref
		if quote, _, more := strings.Cut(strings.TrimSpace(e.Quote), "\n"); quote != "" {
			if line += ": " + quote; more {
				line += " ..."
			}
		}
		switch {
		case !e.Resolved:
			line += " [not found: " + e.Reason + "]"
		case e.Unchanged:
			line += " [so before the change, too]"
		}
		below(line)
	}
	if len(c.Evidence) == 0 || c.Unproven != "" && !strings.Contains(c.Unproven, string(c.Evidence[0].Kind)) {
		below(c.Unproven)
	}
}
