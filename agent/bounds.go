package agent

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of the texts and lists in answers about a goal, in bytes and entries. Longer
// ones are cut, except a goal's task and criteria: a cut one would ask for something
// else, so it is refused.
const (
	maxReport      = 4000 // of an execution's own account
	maxStatement   = 1000 // of any other text
	maxWord        = 300  // of a path, a tag or the like
	maxListEntries = 30
	maxKnowledge   = 10 // pieces of knowledge
	maxQuestions   = 20
)

// clip returns a sanitized text of at most so many bytes, with an ellipsis if it was
// cut.
func clip(text string, most int) string {
	const more = "…"
	text = strings.TrimSpace(term.Sanitize(text))
	if len(text) <= most {
		return text
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[:most-len(more)], "")) + more
}

// clipList returns the first maxListEntries distinct texts of a list, each on one line.
func clipList(list []string) []string {
	var out []string
	for _, text := range list {
		text = clip(term.Line(text), maxWord)
		if text == "" || slices.Contains(out, text) {
			continue
		}
		if out = append(out, text); len(out) == maxListEntries {
			break
		}
	}
	return out
}
