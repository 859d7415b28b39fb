package rest

import (
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/git"
)

// Title returns the title of a pull request as a forge takes it: in one line, of at most
// so many characters, of which the last is an ellipsis where there were more. What before
// returns for the line stands in front of it; nil for nothing. It counts as a part.
func Title(text string, most int, before func(line string) string) string {
	line := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text))
	if before != nil {
		line = before(line) + line
	}
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return line
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
