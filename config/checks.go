package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Check decides a criterion by a shell command, which has to exit with 0. The
// command alone may stand for the whole of it:
//
//	checks:
//	  tests: go test ./...
//	  coverage: {command: ./coverage.sh 80, timeout: 20m}
//
// A goal names it, and so may other systems, which can name no commands: {check: tests}.
type Check struct {
	// Command is run by sh -c in a fresh checkout of the commit that is judged.
	Command string `yaml:"command"`
	// Timeout bounds the command. 0 means that of verify commands (see [Timeouts]).
	Timeout time.Duration `yaml:"timeout"`
}

// SetShort takes the command alone.
func (c *Check) SetShort(command string) { c.Command = command }

// CheckNames returns the names of the project's checks, sorted.
func (p *Project) CheckNames() []string { return slices.Sorted(maps.Keys(p.Checks)) }

// CheckCommands returns the commands of the project's checks, in the order of their names.
func (p *Project) CheckCommands() []string {
	var list []string
	for _, name := range p.CheckNames() {
		list = append(list, p.Checks[name].Command)
	}
	return list
}

// ClosestCheck returns the name of the check that an unknown name was probably
// meant to be, or "" if none is close.
func (p *Project) ClosestCheck(name string) string {
	return strictyaml.Closest(name, p.CheckNames())
}

// checks looks at the commands that criteria can name.
func (c *checker) checks(all map[string]Check) {
	for name, check := range all {
		field := "checks." + name
		if !forge.CheckName.MatchString(name) {
			c.fail(field, "is no name of a check: letters, digits, _, - and ., at most 64, such as unit-tests")
		}
		// Written as the command alone, the check has no line of its own for it.
		at := field + ".command"
		if !c.pos.Has(at) {
			at = field
		}
		if strings.TrimSpace(check.Command) == "" {
			c.fail(at, "has no command; it would decide nothing")
		}
		c.noNUL(at, check.Command)
		if check.Timeout != 0 {
			c.timeout(field+".timeout", check.Timeout)
		}
	}
}
