package document

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/document"
)

// The verdicts that every reader is told, in the words of package document.
type (
	// Claim is a requirement of a task or a criterion of a goal, with what the
	// last verdict says of it.
	Claim = document.Claim
	// Citation is one piece of evidence, with what code found of it.
	Citation = document.Citation
	// Run is how a command ended that decides a criterion.
	Run = document.Run
	// Review is the verdict of one review of a task.
	Review = document.Review
	// Check is one run of a command of the project on one tree.
	Check = document.Check
)

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
