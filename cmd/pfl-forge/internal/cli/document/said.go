package document

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Said has the reasons that a page has given, so that it gives none of them twice. The zero value
// has none.
type Said struct{ reasons []string }

// Add notes a reason that was printed; an empty one is none.
func (s *Said) Add(reason string) {
	if reason = kit.Safe(reason); reason != "" {
		s.reasons = append(s.reasons, reason)
	}
}

// Has reports whether a reason was given, alone or behind what it is the reason of.
func (s *Said) Has(reason string) bool {
	reason = kit.Safe(reason)
	return slices.ContainsFunc(s.reasons, func(said string) bool {
		first, _, _ := strings.Cut(said, "\n")
		return said == reason || first == reason || strings.HasSuffix(first, ": "+reason)
	})
}

// holds reports whether a text is within what was given.
func (s *Said) holds(text string) bool {
	return strings.Contains(strings.Join(s.reasons, "\n"), kit.Safe(text))
}

// Rest returns a line without the reason that it gives behind a colon, if that was given: also
// where the line has only its beginning, as those of a history do, which are bounded. What a review
// rejected for is a reason as well where it was given as that of another one.
func (s *Said) Rest(line string) string {
	for _, said := range s.reasons {
		said, _, _ = strings.Cut(said, "\n")
		if rest, found := without(line, ": ", said); found {
			return rest
		}
		for _, reason, more := strings.Cut(said, ": "); more; _, reason, more = strings.Cut(reason, ": ") {
			cause, _, _ := strings.Cut(reason, " (") // what followed from it is behind it
			for _, reason := range []string{reason, cause} {
				if rest, found := without(line, rejected+": ", reason); found {
					return rest
				}
			}
		}
	}
	return line
}

// rejected is the outcome of a review in a line of a history.
const rejected = "rejected"

// without returns a line without a reason behind a mark that ends in a colon, and whether it was
// there.
func without(line, mark, reason string) (rest string, found bool) {
	for _, text := range []string{reason, term.Short(reason, maxReason)} {
		before, after, found := strings.Cut(line, mark+term.Line(text))
		if found && (after == "" || strings.HasPrefix(after, " (")) {
			return before + strings.TrimSuffix(mark, ": ") + after, true
		}
	}
	return "", false
}

// maxReason bounds a reason in a line of a history, in characters.
const maxReason = 200
