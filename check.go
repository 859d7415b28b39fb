package forge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// VerifyReport is the result of the project's verify commands on one tree.
type VerifyReport struct {
	// Passed says that every verify command exited with 0.
	Passed bool
	// Command is the first one that failed; empty if all passed.
	Command string
	// Output is the end of that command's output.
	Output string
	// Runs are the commands that ran, in their order, also those that passed.
	Runs []CheckRun
	// Proof says whether the change's tests fail without the change; nil where
	// that was not looked at.
	Proof *CheckRun
	// Checks are the runs that decide criteria of a goal, see package verdict.
	// They say nothing of Passed.
	Checks []CheckRun
	// Trials are all runs of the commands after one failed, by which
	// verdict.Blame says whose fault that is. Name says on what.
	Trials []CheckRun
}

// Check decides a criterion of a goal by a command.
type Check struct {
	// Criterion is the number of the criterion, from 1, whose text is that of the check.
	Criterion int
	// Name is a check of the project's configuration; empty for a Command.
	Name string
	// Command is a command line that a person wrote; empty for a Name.
	Command string
	// ExitCode is the exit status that is expected.
	ExitCode int
	// Output is a regular expression that the output has to match, too; empty for any output.
	Output string
	// Timeout bounds the command; 0 for what the project says.
	Timeout time.Duration
}

// Text is the criterion in words.
func (c *Check) Text() string {
	if c.Name != "" {
		return "check " + c.Name + " passes"
	}
	text := fmt.Sprintf("`%s` exits with %d", c.Command, c.ExitCode)
	if c.Output != "" {
		text += fmt.Sprintf(", and its output matches `%s`", c.Output)
	}
	return text
}

// CheckName matches the names that a check of a project can have.
var CheckName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// LikeCheck matches words that read as those of a Check do. Without one they
// are refused: nothing would run.
var LikeCheck = pattern.New("(?is)^\\s*(check\\s+\\S+\\s+passes|`.+`\\s+exits with [0-9]+(,.*)?)[\\s.]*$")

// validChecks returns the first thing that is wrong with an intent's checks, or nil.
func validChecks(in *Intent) *FieldError {
	left := in.Checks
	for i, text := range in.Criteria {
		field := fmt.Sprintf("criteria[%d]", i)
		if checked := len(left) > 0 && left[0].Criterion == i+1 && left[0].Text() == text; !checked {
			if LikeCheck.MatchString(text) {
				return &FieldError{field, "reads like one that a command decides, and is none: write {check: NAME}, {command: LINE} or other words"}
			}
			continue
		}
		if e := left[0].valid(field, in.Source); e != nil {
			return e
		}
		if slices.Index(in.Criteria, text) != i {
			return &FieldError{field, "is given twice"}
		}
		left = left[1:]
	}
	if len(left) > 0 {
		return &FieldError{"checks", "do not belong to the criteria, each to the one that says it in words"}
	}
	return nil
}

// valid returns the first mistake of a check, whose fields are below the given
// one; nil if there is none. A command runs on the workers, so that only a
// person may bring one; everybody else names a check that the repository has.
func (c *Check) valid(field string, by Source) *FieldError {
	_, err := regexp.Compile(c.Output)
	switch {
	case c.Name != "" && (c.Command != "" || c.ExitCode != 0 || c.Output != "" || c.Timeout != 0):
		return &FieldError{field, "has both check and what only a command has; leave one out"}
	case c.Name != "" && !CheckName.MatchString(c.Name):
		return &FieldError{field + ".check", fmt.Sprintf("is %.80q, which is no name of a check", c.Name)}
	case c.Name != "":
		return nil
	case by != SourceHuman:
		return &FieldError{field + ".command", "can be set by people only; name a check of pfl-forge.yaml: {check: tests}"}
	case strings.TrimSpace(c.Command) == "" || strings.ContainsRune(c.Command, 0):
		return &FieldError{field + ".command", "is empty, or holds a NUL character"}
	case c.ExitCode < 0 || c.ExitCode > 255:
		return &FieldError{field + ".expect.exit_code", fmt.Sprintf("is %d; it can be 0 to 255", c.ExitCode)}
	case err != nil:
		return &FieldError{field + ".expect.output", "is no regular expression: " + err.Error()}
	case c.Timeout != 0 && (c.Timeout < time.Second || c.Timeout > 24*time.Hour):
		return &FieldError{field + ".timeout", fmt.Sprintf("is %s; it can be 1s to 24h", c.Timeout)}
	}
	return nil
}

// CheckRun is one run of a command of the project on exactly one tree.
type CheckRun struct {
	// ID is unique within its report, such as v1 for the first verify command.
	ID string
	// Name is the name of a check of the project; empty if the command has none.
	Name string
	// Command is the command line that ran.
	Command string
	// Tree is the tree that it ran on.
	Tree string
	// Passed says that it did what was expected of it.
	Passed bool
	// ExitCode is its exit status; -1 if it was ended because it overran a limit.
	ExitCode int
	// Output is the end of what it printed.
	Output string
	// Duration is how long it ran.
	Duration time.Duration
}
