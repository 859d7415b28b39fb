package cli

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Tools translates a call's list of tools, which has Claude Code's names, for a program
// with tools of its own.
type Tools struct {
	// Files lists which of Read, Glob, Grep, Write and Edit are allowed.
	Files []string
	// Shell allows any command.
	Shell bool
	// Commands lists the beginnings of the allowed commands, if Shell is false. Each
	// consists of plain words.
	Commands []string
}

var (
	reading = []string{"Read", "Glob", "Grep"} // the tools of a read-only call
	writing = append([]string{"Write", "Edit"}, reading...)
	// plainCommand matches a command's beginning that needs no escaping in any CLI.
	plainCommand = pattern.New(`^Bash\(([A-Za-z0-9][A-Za-z0-9 ._/=@-]*):\*\)$`)
)

// ParseTools returns the tools of a call. A read-only call has none that writes or runs
// commands. Tools that only Claude Code has are ignored, unless there are no others. An
// error is a *agent.Failure; backend is named in it.
func (t *Turn) ParseTools(backend string) (Tools, error) {
	var out Tools
	known := len(t.Call.Tools) == 0
	for _, name := range t.Call.Tools {
		base, _, limited := strings.Cut(name, "(")
		switch command := plainCommand.FindStringSubmatch(name); {
		case base != "Bash" && !slices.Contains(writing, base):
			continue
		case t.Call.ReadOnly && !slices.Contains(reading, base):
		case limited && command == nil:
			return out, agent.Fail(forge.FailConfig,
				"%s cannot be limited to %s; give it without parentheses, a command by how it begins, as in Bash(go test:*), or choose another agent in %s",
				backend, name, config.FileName)
		case limited:
			out.Commands = append(out.Commands, strings.TrimSpace(command[1]))
		case base == "Bash":
			out.Shell = true
		case !slices.Contains(out.Files, base):
			out.Files = append(out.Files, base)
		}
		known = true
	}
	if !known {
		return out, agent.Fail(forge.FailConfig, "%s has none of the tools %s; it knows %s and Bash",
			backend, strings.Join(t.Call.Tools, ", "), strings.Join(writing, ", "))
	}
	if out.Shell {
		out.Commands = nil
	}
	return out, nil
}
