// Package term makes text that others wrote safe to show on a terminal.
//
// Titles, answers of agents, output of commands and names of files come from people and
// programs that cannot be trusted. Printed as they are, they could clear the screen, write
// into the clipboard or hide what they say. Everything that prints or stores such text calls
// one of [Sanitize] (text of several lines), [Line] (one line) and [Short] (one line of
// bounded length).
//
// The libraries that strip escape sequences (charmbracelet/x/ansi and others) follow a
// terminal's rules: an unterminated string sequence takes all text after it along. Here
// it ends with its line, because text that vanishes misleads as well.
package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sanitize returns s as plain text of lines: escape sequences and control characters are
// removed, every kind of line end becomes "\n", tabs stay, and characters that hide or
// reorder text are spelled out as <U+202E>. Bytes that are not UTF-8 become U+FFFD.
// Sanitizing twice changes nothing.
func Sanitize(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		if n := sequence(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\r':
			if !strings.HasPrefix(s[i:], "\n") {
				b.WriteByte('\n')
			}
		case r == 0x2028 || r == 0x2029 || r == 0x85:
			b.WriteByte('\n')
		case isControl(r):
		case isDeceptive(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Line returns s sanitized and on one line: runs of white space are one space.
func Line(s string) string {
	return strings.Join(strings.Fields(Sanitize(s)), " ")
}

// Short returns Line(s), cut to at most n characters. The last one is an ellipsis if the text
// was cut. Characters are code points: a wide one counts as one.
func Short(s string, n int) string {
	s = Line(s)
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:max(n-1, 0)]) + "…"
}

// isPlain reports whether Sanitize would change nothing, without looking closely.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n' && c != '\t') || c >= 0x7f {
			return false
		}
	}
	return true
}

// isControl reports whether r is one of the control characters C0, DEL and C1.
func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

// isDeceptive reports whether r changes the order of the text around it, or cannot be seen:
// marks of direction, joiners, fillers, tags and the like.
func isDeceptive(r rune) bool {
	switch {
	case r == 0x00ad, r == 0x034f, r == 0x061c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xfeff, r == 0xffa0:
		return true
	case r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfff0 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff, r >= 0x1d173 && r <= 0x1d17a:
		return true
	}
	return false
}

// sequence returns the length in bytes of the escape sequence that s begins with; 0 if it
// begins with none.
func sequence(s string) int {
	kind, n := introducer(s)
	switch kind {
	case 0:
		return 0
	case '[':
		return n + control(s[n:])
	case ']', 'P', 'X', '^', '_':
		return n + text(s[n:])
	}
	return n
}

// introducer returns the kind of the sequence that s begins with and the length of its
// introducer. The kind is the character after ESC in the 7-bit form, such as '[' for a CSI; it
// is ESC for a sequence that ends with the introducer, and 0 if there is none.
func introducer(s string) (kind byte, n int) {
	if s[0] == 0x1b {
		i := 1
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f { // intermediates, as in ESC ( B
			i++
		}
		if i == len(s) || s[i] < 0x20 || s[i] > 0x7e {
			return 0x1b, i
		}
		if i > 1 {
			return 0x1b, i + 1
		}
		return s[1], 2
	}
	if len(s) > 1 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f { // C1 as UTF-8
		switch s[1] {
		case 0x90, 0x98, 0x9b, 0x9d, 0x9e, 0x9f:
			return s[1] - 0x40, 2
		}
	}
	return 0, 0
}

// control returns the length of the parameters and the final byte of a CSI sequence.
func control(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return i
		}
	}
	return len(s)
}

// maxSequence bounds the text of a string sequence, in bytes; real ones are titles and links.
const maxSequence = 1024

// text returns the length of the text of a string sequence, with its end. It is 0 for one
// that does not end on its line, or within maxSequence, so that only the introducer is
// removed, and a line full of introducers is not read once for each.
func text(s string) int {
	for i := range min(len(s), maxSequence) {
		switch {
		case s[i] == 0x07:
			return i + 1
		case strings.HasPrefix(s[i:], "\x1b\\"), strings.HasPrefix(s[i:], "\u009c"):
			return i + 2
		case s[i] == '\n' || s[i] == 0x1b:
			return 0
		}
	}
	return 0
}
