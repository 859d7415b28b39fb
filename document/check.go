package document

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

var typeName = pattern.New(`^[a-z][a-z0-9_-]{0,63}$`)

// CheckTitle returns why a text is no title of an intent; empty if it is one.
func CheckTitle(s string) string {
	if n := utf8.RuneCountInString(s); n > forge.MaxTitle {
		return fmt.Sprintf("has %d characters; at most %d are allowed", n, forge.MaxTitle)
	}
	return CheckLine(s)
}

// CheckLine returns why a text is not one line of text; empty if it is.
func CheckLine(s string) string {
	if strings.TrimSpace(s) == "" {
		return "is empty"
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return fmt.Sprintf("holds the control character %U; it must be one line of text", r)
		}
	}
	return ""
}

// CheckType returns why a text is no type of an intent; empty if it is one.
func CheckType(s string) string {
	if typeName.MatchString(s) {
		return ""
	}
	return fmt.Sprintf("is %q; a type must be one lower-case word", s)
}

// CheckRisk returns why a text is no risk; empty if it is one.
func CheckRisk(s string) string {
	if forge.Risk(s).Rank() == 0 {
		return fmt.Sprintf("is %q; it can be low, med or high", s)
	}
	return ""
}

// CheckText returns why a text of several lines, such as a body or an answer, is refused;
// empty if it is not.
func CheckText(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty"
	case strings.ContainsRune(s, 0):
		return "holds a NUL character"
	case len(s) > forge.MaxBody:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), forge.MaxBody)
	}
	return ""
}
