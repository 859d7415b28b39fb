package verdict

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// OfChecks returns a claim for each criterion that a command decides, in the order of the
// checks. It is met if the command ran on exactly this tree and did what was expected of
// it; a run on another tree, or of another criterion, is none.
func OfChecks(criteria []string, checks []forge.Check, report *forge.VerifyReport, tree string) []forge.Claim {
	var claims []forge.Claim
	for i := range checks {
		c := &checks[i]
		claim := forge.Claim{Number: c.Criterion, Confidence: 1, Note: "its command did not run on this commit"}
		if n := c.Criterion; n >= 1 && n <= len(criteria) {
			claim.Text = criteria[n-1]
		}
		if run := runOf(report, c, tree); run != nil {
			claim.Run, claim.Met, claim.Note = run, run.Passed, noteOf(c, run)
			claim.Evidence = []forge.Citation{{Kind: forge.CitationCommand, Ref: run.ID, Resolved: run.Passed}}
		}
		claims = append(claims, claim)
	}
	return claims
}

// RunID names the run that decides a criterion, by its number and a digest of the check. A
// report reaches the rules with what looks like a secret taken out of its texts, so that
// the command line in it may not be the one that was asked for; in a digest there is
// nothing to take out.
func RunID(c *forge.Check) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q", c.Name, c.Command, c.ExitCode, c.Output))
	return fmt.Sprintf("c%d-%x", c.Criterion, sum[:4])
}

// Asked reports whether the checks of a report are those that a reviewer asked for: they
// decide no criterion.
func Asked(r *forge.VerifyReport) bool {
	return r != nil && len(r.Checks) > 0 && strings.HasPrefix(r.Checks[0].ID, "c0-")
}

// runOf returns the run of a check on a tree; nil if there is none. It has to be of the
// criterion, of the tree and of the check. The command of a check that the project names
// is the worker's to know, by the configuration of the base branch.
func runOf(report *forge.VerifyReport, c *forge.Check, tree string) *forge.CheckRun {
	if report == nil {
		return nil
	}
	for i := range report.Checks {
		run := &report.Checks[i]
		if run.ID == RunID(c) && run.Tree == tree {
			return run
		}
	}
	return nil
}

// noteOf says how a command ended.
func noteOf(c *forge.Check, run *forge.CheckRun) string {
	switch {
	case run.ExitCode < 0:
		return "it was ended before it was finished"
	case run.Passed:
		return fmt.Sprintf("exit status %d", run.ExitCode)
	case run.ExitCode != c.ExitCode:
		return fmt.Sprintf("exit status %d, %d expected", run.ExitCode, c.ExitCode)
	}
	return fmt.Sprintf("exit status %d, and the output does not match %s", run.ExitCode, c.Output)
}

// Texts returns those of a goal's criteria that no command decides, and the
// number of each. A judge is asked for these alone, numbered from 1: it cannot
// even name a criterion that a command decides.
func Texts(criteria []string, checks []forge.Check) (texts []string, numbers []int) {
	for i, text := range criteria {
		if next := len(checks) > 0 && checks[0].Criterion == i+1; next {
			checks = checks[1:]
			continue
		}
		texts, numbers = append(texts, text), append(numbers, i+1)
	}
	return texts, numbers
}

// Failing returns the first command of a report that did not pass, be it a check; empty if all did.
func Failing(r *forge.VerifyReport) string {
	switch r = Strict(r); {
	case r == nil, r.Passed:
		return ""
	case r.Command == "":
		return "verify"
	}
	return r.Command
}

// Strict returns a report as one that did not pass if a check of it did not. It is how a
// change is looked at that is about to be merged on another tip, where no judge is asked:
// what was met before has to be so still.
func Strict(r *forge.VerifyReport) *forge.VerifyReport {
	if r == nil || !r.Passed {
		return r
	}
	for i := range r.Checks {
		if c := &r.Checks[i]; !c.Passed {
			out := *r
			out.Passed, out.Command, out.Output = false, c.Command, c.Output
			return &out
		}
	}
	return r
}

// RegressionProof is the name of the run that is a regression proof: the tests
// of a change, without the change.
const RegressionProof = "regression proof"

// The phrase of FailsAsItWas.
const asItWas, asItWasMiddle, asItWasEnd = "with ", " as it was, ", " fails"

// FailsAsItWas returns the reason why a person has to look at a change that passes its own
// checks alone: with the files that they run as these were before it, a command line fails.
func FailsAsItWas(files, line string) string {
	return asItWas + files + asItWasMiddle + strconv.Quote(line) + asItWasEnd
}

// IsFailsAsItWas reports whether a reason is one of FailsAsItWas.
func IsFailsAsItWas(reason string) bool {
	return strings.HasPrefix(reason, asItWas) && strings.Contains(reason, asItWasMiddle) && strings.HasSuffix(reason, asItWasEnd)
}
