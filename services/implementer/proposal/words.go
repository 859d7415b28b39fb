package proposal

import "github.com/pfl-forge/pfl-forge/internal/pattern"

var (
	// skipping matches the words at which a CI runs nothing for a commit.
	skipping = pattern.New(`(?i)\[\s*((?:skip|no)[\s_-]*(?:ci|actions?|checks)|(?:ci|actions?)[\s_-]*skip)\s*\]`)
	// unbuilt matches another way to say that.
	unbuilt = pattern.New(`(?i)\*+\s*(NO_CI)\s*\*+`)
	// closing matches the words at which a forge closes an issue when the commit is merged,
	// up to the number, and what is before that.
	closing = pattern.New(`(?i)(\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?|complet(?:e[sd]?|ing))` +
		`[\s:*_(\[]+(?:issues?\s+)?)(?:([\w./-]*[#!])|(gh)-|(https?://\S*/(?:issues|pull|pulls|merge_requests|work_items)/))(\d+)`)
)

// Defused returns a text without the words by which a commit has checks skipped, or
// issues closed, at a forge: whether a change is checked is not for its author to say,
// and whose issue it closes neither.
func Defused(text string) string {
	text = skipping.ReplaceAllString(text, "($1)")
	text = unbuilt.ReplaceAllString(text, "$1")
	return closing.ReplaceAllString(text, "$1$2$3$4 $5")
}
