package evidence

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

// maxQuote bounds a quote, in bytes: more is no quote but a copy.
const maxQuote = 4000

// common are words that stand in every program, and show nothing by themselves.
var common = []string{
	"begin", "break", "case", "catch", "continue", "default", "do", "done", "elif", "else", "end", "endif", "except", "false", "fi",
	"finally", "for", "func", "function", "if", "let", "nil", "none", "null", "pass", "return", "self", "then",
	"this", "true", "try", "var", "void", "while",
}

// minLetters is how many letters and digits a quote needs at least. A letter of a
// script that has a word in one or two of them counts as two.
const minLetters = 3

// trivial reports whether a quote is too little to show anything: it has hardly a
// letter, or only words that stand everywhere.
func trivial(quote string) bool {
	letters := 0
	for _, r := range quote {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			letters += 2
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			letters++
		}
	}
	words := strings.FieldsFunc(quote, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	special := func(w string) bool { return !slices.Contains(common, strings.ToLower(w)) }
	return letters < minLetters || !slices.ContainsFunc(words, special)
}

// shows reports whether a quote can show something of a text that it is from: it is not trivial,
// or it has whole lines of a text that is trivial altogether, as a version's number is, so
// that nothing better can be quoted.
func shows(quote []string, from text) bool {
	if !trivial(strings.Join(quote, "\n")) {
		return true
	}
	for _, l := range quote {
		if l == "" || !slices.Contains(from.lines, l) {
			return false
		}
	}
	return trivial(strings.Join(from.lines, "\n"))
}

// quoted returns the lines of a quote without indentation, white space at their ends,
// and empty lines around it.
func quoted(quote string) []string {
	lines := strings.Split(strings.TrimSpace(quote), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// unmarked returns the lines without the mark that each of them begins with in a
// diff, + or -; false if one of them does not.
func unmarked(lines []string, mark string) ([]string, bool) {
	out := make([]string, len(lines))
	for i, l := range lines {
		rest, ok := strings.CutPrefix(l, mark)
		if !ok {
			return nil, false
		}
		out[i] = strings.TrimSpace(rest)
	}
	return out, true
}

// text is a file as it is compared with quotes.
type text struct {
	// lines have no indentation and no white space at their ends.
	lines []string
}

// newText returns the lines of a file.
func newText(content []byte) text {
	content = bytes.TrimSuffix(content, []byte("\n"))
	if len(content) == 0 {
		return text{}
	}
	lines := strings.Split(string(content), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return text{lines}
}

// only returns the text with the lines outside of the ranges taken out, so that no quote
// stands there.
func (t text) only(ranges []objects.Lines) text {
	out := make([]string, len(t.lines))
	for i := range out {
		out[i] = "\x00"
	}
	for _, r := range ranges {
		for i := max(r.From, 1); i <= min(r.To, len(t.lines)); i++ {
			out[i-1] = t.lines[i-1]
		}
	}
	return text{out}
}

// find returns the first line in a range, from 1, at which a quote begins that ends in the
// range, too; 0 if there is none. A quote may begin and end within a line.
func (t text) find(quote []string, in objects.Lines) int {
	for at := max(in.From, 1); at+len(quote)-1 <= min(in.To, len(t.lines)); at++ {
		if t.stands(quote, at) {
			return at
		}
	}
	return 0
}

// stands reports whether a quote begins on a line.
func (t text) stands(quote []string, at int) bool {
	last := len(quote) - 1
	for i, q := range quote {
		line := t.lines[at-1+i]
		// Models are shown code with what cannot be seen spelled out.
		if !matches(strings.ToValidUTF8(line, "\uFFFD"), q, i, last) && !matches(prompt.Visible(line), q, i, last) {
			return false
		}
	}
	return true
}

// matches reports whether line i of a quote is a line of a file: of several, the first may be its
// end, the last its beginning, and those in between are whole.
func matches(line, quote string, i, last int) bool {
	switch {
	case last == 0:
		return strings.Contains(line, quote)
	case i == 0:
		return strings.HasSuffix(line, quote)
	case i == last:
		return strings.HasPrefix(line, quote)
	}
	return line == quote
}
