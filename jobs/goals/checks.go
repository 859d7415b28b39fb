// Package goals knows what a goal says of the work on it: which tools its agent may use,
// and which commands decide its criteria. It runs nothing.
//
// What it reads is the configuration of the base branch and the goal as it was asked for.
// A change has no say in how it is measured; which of its files a check runs, package
// guard finds.
package goals

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Command is a check with all that is needed to run it.
type Command struct {
	// Line is the command line: the project's for a check that is named, otherwise the one
	// that a person wrote.
	Line string
	// Timeout bounds it: that of the criterion, of the project's check, or of
	// verify commands, the first that says something.
	Timeout time.Duration

	// check says which criterion it decides, and what is expected of it.
	check forge.Check
	// output has to match what it prints; nil for anything.
	output *regexp.Regexp
}

// Commands returns the commands of checks, by a configuration, which is that of a commit
// of the base branch. A check that it does not have is a forge.FailConfig.
func Commands(p *config.Project, at git.OID, checks []forge.Check) ([]Command, error) {
	var list []Command
	for _, check := range checks {
		c := Command{Line: check.Command, Timeout: check.Timeout, check: check}
		if check.Name != "" {
			named, ok := p.Checks[check.Name]
			if !ok {
				return nil, agent.Fail(forge.FailConfig, "criteria[%d].check: %s at %s has no check %q%s; add it on the base branch, then retry",
					check.Criterion-1, config.FileName, at.Short(), check.Name, others(p, check.Name))
			}
			c.Line, c.Timeout = named.Command, named.Timeout
		}
		if check.Output != "" {
			var err error
			if c.output, err = regexp.Compile(check.Output); err != nil {
				return nil, agent.Fail(forge.FailConfig, "criteria[%d].expect.output: %v", check.Criterion-1, err)
			}
		}
		c.Timeout = cmp.Or(c.Timeout, p.Timeouts.Verify)
		list = append(list, c)
	}
	return list, nil
}

// Named returns the command lines of the checks that the project names, for the agent that
// works towards the goal. Those that are commands of the goal itself say so in the
// criterion.
func Named(p *config.Project, checks []forge.Check) []string {
	var lines []string
	for _, c := range checks {
		if named, ok := p.Checks[c.Name]; ok && c.Name != "" {
			lines = append(lines, named.Command)
		}
	}
	return lines
}

// Checks returns the checks that decide criteria of the goal that a command is about; none for
// another one.
func Checks(c *forge.Command) []forge.Check {
	if change := c.Merge().Change; change != nil { // it has no task
		return change.Checks
	}
	return c.Task.Checks
}

// others says which check may have been meant in place of one that there is not.
func others(p *config.Project, name string) string {
	if best := p.ClosestCheck(name); best != "" {
		return fmt.Sprintf(" (did you mean %q?)", best)
	}
	if names := p.CheckNames(); len(names) > 0 {
		return ", only " + strings.Join(names, ", ")
	}
	return ", and no other one"
}

// Named returns a run with what the rules know it by: the criterion that it decides, and
// the tree that it was of. A run that lacks one of these, or has those of another, decides
// nothing.
func (c *Command) Named(run forge.CheckRun, tree string) forge.CheckRun {
	run.ID, run.Name, run.Command, run.Tree = verdict.RunID(&c.check), c.check.Name, c.Line, tree
	return run
}

// Decide says in Passed whether a run did what is expected. whole is its output for the
// one who has to repair it.
func (c *Command) Decide(run *forge.CheckRun, whole string) {
	// The exit status counts whatever is printed: a change writes what its own tests print.
	run.Passed = run.ExitCode == c.check.ExitCode && (c.output == nil || c.output.MatchString(run.Output))
	if !run.Passed { // then somebody reads it
		run.Output = whole
	}
}

// NotSetUp returns the run of a check whose checkout could not be set up.
func NotSetUp(set *forge.VerifyReport) forge.CheckRun {
	run := forge.CheckRun{ExitCode: -1}
	if set != nil {
		run.Output = fmt.Sprintf("%q, which sets the checkout up, failed:\n%s", set.Command, set.Output)
	}
	return run
}
