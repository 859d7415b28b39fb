package document

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Criterion has to hold in the end: a text, which a judge decides, or a
// command. These are the forms:
//
//	criteria:
//	  - the login page links to the reset form
//	  - check: tests
//	  - {type: command, command: test -e RESULT.txt, expect: {exit_code: 0}, timeout: 1m}
type Criterion struct {
	// Text is the criterion in words, for a judge. It is written in place of the mapping.
	Text string `yaml:"-"`

	Check   string        `yaml:"check,omitempty"`   // a check of pfl-forge.yaml, which has to pass
	Type    string        `yaml:"type,omitempty"`    // command, where a command is given
	Command string        `yaml:"command,omitempty"` // a shell command, run on exactly the commit that is judged; in task.yaml only
	Expect  *Expect       `yaml:"expect,omitempty"`  // of the command, if not just exit code 0
	Timeout time.Duration `yaml:"timeout,omitempty"` // of the command, if not that of verify commands
}

// Expect says when a command decides that a criterion is met.
type Expect struct {
	ExitCode int    `yaml:"exit_code,omitempty"` // 0 if left out
	Output   string `yaml:"output,omitempty"`    // a regular expression that the output has to match, too
}

// TypeCommand is the type of a criterion that is a command. It has to be said,
// so that none is written where words were meant.
const TypeCommand = "command"

// SetShort takes a criterion in words.
func (c *Criterion) SetShort(text string) { *c = Criterion{Text: text} }

// Short returns a criterion in words; false for a command.
func (c *Criterion) Short() (string, bool) { return c.Text, c.Check == "" && c.Command == "" }

// CriteriaOf returns the criteria of an intent as they were submitted.
func CriteriaOf(texts []string, checks []forge.Check) []Criterion {
	var list []Criterion
	for i, text := range texts {
		c := Criterion{Text: text}
		if len(checks) > 0 && checks[0].Criterion == i+1 {
			check := checks[0]
			checks = checks[1:]
			c = Criterion{Check: check.Name, Command: check.Command, Timeout: check.Timeout}
			if c.Command != "" {
				c.Type = TypeCommand
			}
			if check.ExitCode != 0 || check.Output != "" {
				c.Expect = &Expect{check.ExitCode, check.Output}
			}
		}
		list = append(list, c)
	}
	return list
}

// Criteria returns criteria as an intent has them.
func Criteria(list []Criterion) (texts []string, checks []forge.Check) {
	for i, c := range list {
		text := c.Text
		if _, words := c.Short(); !words {
			check := forge.Check{Criterion: i + 1, Name: c.Check, Command: c.Command, Timeout: c.Timeout}
			if c.Expect != nil {
				check.ExitCode, check.Output = c.Expect.ExitCode, c.Expect.Output
			}
			checks, text = append(checks, check), check.Text()
		}
		texts = append(texts, text)
	}
	return texts, checks
}

// WithChecks returns criteria as an intent has them: texts, and after them checks of the
// project by their names.
func WithChecks(texts, names []string) ([]string, []forge.Check) {
	var list []Criterion
	for _, text := range texts {
		list = append(list, Criterion{Text: text})
	}
	for _, name := range names {
		list = append(list, Criterion{Check: name})
	}
	return Criteria(list)
}

// CheckCriteria returns the first criterion that says nothing, or not what it is, or
// nil. It finds what cannot be seen any more once the criteria are an intent's: a
// key that has no effect, or a command that is not called one. The rest is checked
// with the intent: names, regular expressions, bounds, and who may say a command.
func CheckCriteria(list []Criterion) *forge.FieldError {
	for i, c := range list {
		field := fmt.Sprintf("criteria[%d]", i)
		_, words := c.Short()
		switch {
		case words && c.Text == "" && (c.Type != "" || c.Expect != nil || c.Timeout != 0):
			return &forge.FieldError{Field: field, Reason: "has no command"}
		case words && c.Text == "":
			return &forge.FieldError{Field: field, Reason: "is empty; write a text, or check: with a name of pfl-forge.yaml, or type: command and a command"}
		case c.Command != "" && c.Type != TypeCommand:
			return &forge.FieldError{Field: field, Reason: fmt.Sprintf("has a command, and the type %.40q; write type: command", c.Type)}
		case c.Check != "" && (c.Type != "" || c.Expect != nil):
			return &forge.FieldError{Field: field, Reason: "has both check and what only a command has; leave one out"}
		}
	}
	return nil
}
