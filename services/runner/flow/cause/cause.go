// Package cause finds the line of an output or a message that tells a person why something failed.
//
// The rules shorten failures with it before they are journaled, and package render prints with
// it. It is pure and belongs to the rules: another choice of line changes texts in records.
package cause

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// failing matches the lines of an output that say why a command failed, and noise those that
// only say that it did.
var (
	failing = pattern.New(`(?i)\b(error|fail(ed|ure|s)?|fatal|panic|undefined|cannot|unexpected|expected|missing|not found|no such|denied)\b`)
	noise   = pattern.New(`^(FAIL(\s.*)?|ok\b.*|PASS|exit status \d+|make(\[\d+\])?: .*|npm (ERR!|error).*)$`)
)

// maxCause bounds a line about a failure, in bytes.
const maxCause = 200

// Line returns the line of a failed command's output that tells a person most about why: the
// first one that names an error, or else the last one. It is empty if there is no such line.
func Line(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || noise.MatchString(line):
		case failing.MatchString(line):
			return clip(line)
		default:
			last = line
		}
	}
	return clip(last)
}

// Gist returns one line about a failure, its cause first. Of a message whose first line
// introduces the output of a command, such as "make test" exited with status 2:, it is the
// cause in the output and how the command ended; of any other one the first line.
func Gist(message string) string {
	const most = 60 // bytes of a command
	head, output, _ := strings.Cut(strings.TrimSpace(message), "\n")
	head, introduces := strings.CutSuffix(strings.TrimSpace(head), ":")
	why := ""
	if introduces {
		why = Line(output)
	}
	if why == "" {
		return clip(head)
	}
	if i := strings.LastIndex(head, `" `); i > most {
		head = head[i+2:]
	}
	return fmt.Sprintf("%s (%s)", why, head)
}

// clip returns at most maxCause bytes of a line, with an ellipsis if it was longer.
func clip(line string) string {
	if len(line) > maxCause {
		return strings.ToValidUTF8(line[:maxCause], "") + " ..."
	}
	return line
}
