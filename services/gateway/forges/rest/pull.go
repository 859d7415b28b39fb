package rest

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/git"
)

// Title returns the title of a pull request as a forge takes it: in one line, of at most
// so many characters, of which the last is an ellipsis where there were more.
func Title(text string, most int) string { return cut(line(text), most) }

// Drafts says how a forge tells a draft that has no other sign of one than its title.
type Drafts struct {
	// Begin begins the title of a draft that we write.
	Begin string
	// Known are all beginnings by which the forge tells one, in any case of letters.
	Known []string
}

// plain stands before a title that only looks like a draft's. It cannot be seen.
const plain = "\u200b"

// Title is Title for a draft, or for one that is none: that an agent has begun with WIP would
// never be merged. What stands in front of it counts as a part.
func (d Drafts) Title(text string, draft bool, most int) string {
	title := line(text)
	looks := func(begin string) bool {
		return len(title) >= len(begin) && strings.EqualFold(title[:len(begin)], begin)
	}
	switch {
	case draft:
		title = d.Begin + title
	case slices.ContainsFunc(d.Known, looks):
		title = plain + title
	}
	return cut(title, most)
}

// Wanted returns the title that Title was given, as far as that can be told
// from what the forge has.
func (d Drafts) Wanted(title string, draft bool) string {
	title = strings.TrimPrefix(title, plain)
	if draft {
		title = strings.TrimPrefix(title, d.Begin)
	}
	return title
}

// line returns a text in one line.
func line(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text))
}

// cut returns a text of at most so many characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// Branches returns an error if one of the names is no branch's. They become parts of paths
// and of queries: one with a dot, a colon or an owner in front would be another thing there.
func Branches(names ...git.Branch) error {
	for _, b := range names {
		if _, err := git.ParseBranch(string(b)); err != nil {
			return err
		}
	}
	return nil
}
