package drafts

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// fence is the line before and behind the front matter.
const fence = "---"

// draftText is a draft, taken apart. Lines are counted from 1.
type draftText struct {
	// front is the YAML between the fences; nil if there are none.
	front     []byte
	frontLine int
	// body is the rest, with line ends of one character.
	body     string
	bodyLine int
}

// splitDraft separates the front matter from the body. It accepts a byte order
// mark and the line ends of any system. A reason says why it cannot; line is its place.
func splitDraft(data []byte) (doc draftText, line int, reason string) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if line := badLine(data, func(b []byte) bool { return !utf8.Valid(b) }); line > 0 {
		return doc, line, "is not UTF-8"
	}
	if line := badLine(data, func(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }); line > 0 {
		return doc, line, "holds a NUL character"
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != fence {
		return draftText{body: text, bodyLine: 1}, 0, ""
	}
	doc = draftText{frontLine: 2, bodyLine: 2}
	var front strings.Builder
	for l := range strings.Lines(rest) {
		doc.bodyLine++
		if strings.TrimRight(l, " \t\n") == fence {
			doc.front = []byte(front.String())
			doc.body = rest[front.Len()+len(l):]
			return doc, 0, ""
		}
		front.WriteString(l)
	}
	return doc, 1, "opens its front matter with --- but does not close it"
}

// Encode returns the text of a draft, which Read reads back.
func Encode(d *document.Draft, body string) ([]byte, error) {
	front, err := strictyaml.Encode(d)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(fence+"\n"), front, []byte(fence+"\n"), []byte(body)), nil
}

// badLine returns the first line that is bad, counted from 1, or 0. Bad must be true of a
// text if it is true of one of its lines.
func badLine(data []byte, bad func([]byte) bool) int {
	if !bad(data) {
		return 0
	}
	n := 0
	for l := range bytes.Lines(data) {
		n++
		if bad(l) {
			return n
		}
	}
	return n
}

// maxDerivedTitle bounds a title that is taken from the body, in characters.
const maxDerivedTitle = 100

// titleOf returns the first line of the body that says something, without the marks of a
// heading, on one line without control characters, cut at maxDerivedTitle. It is empty
// for a body of blanks and marks.
func titleOf(body string) string {
	for l := range strings.Lines(body) {
		l = strings.TrimSpace(l)
		if h := strings.TrimLeft(l, "#"); h != l && (h == "" || h[0] == ' ' || h[0] == '\t') {
			l = strings.TrimRight(h, "# \t")
		}
		l = strings.Join(strings.FieldsFunc(l, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
		if l == "" {
			continue
		}
		if r := []rune(l); len(r) > maxDerivedTitle {
			return strings.TrimSpace(string(r[:maxDerivedTitle-1])) + "…"
		}
		return l
	}
	return ""
}
