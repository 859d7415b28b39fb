package rule

import (
	"fmt"
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
