package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Visible returns s with each character spelled out, as <U+00A0>, that cannot be told from a blank
// or from nothing, or that a terminal obeys. Unlike [Sanitize] it leaves nothing out, and takes the
// spaces and fillers for invisible that ordinary text has: it is for a reader who has to see all
// that another reader gets. Only "\n", "\r\n", tabs and blanks stay, and the variation selector
// U+FE0F right behind a symbol that it turns into an emoji. Bytes that are not UTF-8 become U+FFFD.
func Visible(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	var last rune
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\r' && strings.HasPrefix(s[i:], "\n"): // the line end follows
		case Hides(r, last):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// Hides reports whether a character behind another one cannot be seen, or
// changes the order of those around it.
func Hides(r, before rune) bool {
	switch {
	case r == '\n', r == '\t', r == 0xfe0f && isSymbol(before):
		return false
	}
	return isControl(r) || isDeceptive(r) || isBlank(r)
}

// isBlank reports whether r looks like a blank or like nothing, although
// ordinary text has it: spaces but the blank itself, the empty Braille pattern,
// variation selectors, controls of shorthand.
func isBlank(r rune) bool {
	switch {
	case r == 0x00a0, r == 0x1680, r == 0x202f, r == 0x205f, r == 0x2028, r == 0x2029, r == 0x2800, r == 0x3000:
		return true
	case r >= 0x2000 && r <= 0x200a, r >= 0xfe00 && r <= 0xfe0f, r >= 0x1bca0 && r <= 0x1bca3:
		return true
	}
	return false
}

// isSymbol reports whether U+FE0F turns r into an emoji.
func isSymbol(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r == '#', r == '*', r == 0xa9, r == 0xae, r == 0x203c, r == 0x2049, r == 0x2122, r == 0x2139:
		return true
	case r >= 0x2190 && r <= 0x27bf, r >= 0x2900 && r <= 0x2bff, r == 0x3030, r == 0x303d, r == 0x3297, r == 0x3299:
		return true
	}
	return r >= 0x1f000 && r <= 0x1faff
}
