package prompt

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Visible returns code with every invisible character spelled out: control characters
// and those that hide or reorder text as <U+202E>, bytes that are no UTF-8 as <0xFF>.
// Tabs and line feeds stay.
func Visible(code string) string {
	if !hides(code) {
		return code
	}
	var b strings.Builder
	b.Grow(len(code))
	for i := 0; i < len(code); {
		r, n := utf8.DecodeRuneInString(code[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<0x%02X>", code[i])
		case hidden(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteString(code[i : i+n])
		}
		i += n
	}
	return b.String()
}

// hides reports whether some character of code cannot be seen.
func hides(code string) bool {
	return !utf8.ValidString(code) || strings.ContainsFunc(code, hidden)
}

// hidden reports whether a character cannot be seen where it is.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r >= ' ' && r < 0x7f:
		return false
	case r >= 0x3400 && r <= 0xd7a3: // ideographs and syllables: none hides, and there may be many
		return false
	}
	s := string(r)
	return term.Sanitize(s) != s
}
