package agent

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of what an agent says about a goal, in bytes and entries. What is longer is
// cut, but for a goal's task and criteria, which are refused: what is left of them would
// ask for something else.
const (
	maxReport      = 4000 // of an execution's own account
	maxStatement   = 1000 // of any other text
	maxWord        = 300  // of a path, a tag or the like
	maxListEntries = 30
	maxKnowledge   = 10 // pieces of knowledge
	maxQuestions   = 20
)

// clip returns a text without what would not be shown, cut to so many bytes.
func clip(text string, most int) string {
	const more = "…"
	text = strings.TrimSpace(term.Sanitize(text))
	if len(text) <= most {
		return text
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[:most-len(more)], "")) + more
}

// clipList returns the first of a list of short texts, each once and on one line.
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
