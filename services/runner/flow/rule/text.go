package rule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Refuse returns the decision on an event that is not allowed. The words say why,
// for a person.
func Refuse(format string, args ...any) (forge.Decision, error) {
	return forge.Refused, fmt.Errorf(format, args...)
}

// Ignore returns the decision on an event that changes nothing: it is known, or it
// is not waited for any more.
func Ignore(format string, args ...any) (forge.Decision, error) {
	return forge.Ignored, fmt.Errorf(format, args...)
}

// FirstLine returns a text's first line, at most 200 bytes of it, and an ellipsis if
// there is more.
func FirstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	const most = 200
	if len(line) > most {
		line, more = strings.ToValidUTF8(line[:most], ""), true
	}
	if more {
		line += " ..."
	}
	return line
}

// failing matches the lines of an output that say why a command failed, and noise those that
// only say that it did.
var (
	failing = regexp.MustCompile(`(?i)\b(error|fail(ed|ure|s)?|fatal|panic|undefined|cannot|unexpected|expected|missing|not found|no such|denied)\b`)
	noise   = regexp.MustCompile(`^(FAIL\b.*|ok\b.*|PASS|exit status \d+|make(\[\d+\])?: .*|npm (ERR!|error).*)$`)
)

// Cause returns the line of a failed command's output that tells a person most about why: the
// first one that names an error, or else the last one. It is empty if there is no such line.
func Cause(output string) string {
	last := ""
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || noise.MatchString(line):
		case failing.MatchString(line):
			return FirstLine(line)
		default:
			last = line
		}
	}
	return FirstLine(last)
}

// Count returns "1 task" or "3 tasks".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Shorten returns at most so many bytes of a text.
func Shorten(text string, most int) string {
	if len(text) > most {
		return text[:most]
	}
	return text
}

// Last returns the newest entries of a list, at most so many. A list that is cut is
// copied.
func Last[T any](list []T, most int) []T {
	if more := len(list) - most; more > 0 {
		return slices.Clone(list[more:])
	}
	return list
}

// SameKnowledge reports whether two pieces of knowledge say the same.
func SameKnowledge(a, b forge.Knowledge) bool {
	return a.Type == b.Type && strings.EqualFold(a.Content, b.Content)
}
