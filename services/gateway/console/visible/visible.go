// Package visible shows texts of others so that a person sees all that is in
// them: whoever decides about a text decides about the one that an agent gets.
// Characters that cannot be seen, or that change the order of those around
// them, are spelled out. It makes no HTML: templates escape what it returns.
package visible

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Piece is a part of a text that others wrote.
type Piece struct {
	// Text is shown as it is; where Hidden is set it spells out characters that cannot be seen,
	// or change the order of those around them.
	Text   string
	Hidden bool
	// Count is how many characters a hidden piece is of.
	Count int
}

// mostSpelled bounds the characters that are spelled out one by one where many hide in a row.
const mostSpelled = 8

// Tag characters are ASCII that cannot be seen: whoever reads them reads the
// letter. mostTags bounds those that are shown of a row.
const (
	firstTag, lastTag = 0xE0020, 0xE007E
	mostTags          = 500
)

// Reveal splits a text of others so that all of it can be seen. It takes any string type. What
// hides in a row is one piece, which counts what it does not spell out: a page stays small
// whatever is on it.
func Reveal(value any) (list []Piece) {
	text := asText(value)
	if printable(text) {
		if text == "" {
			return nil
		}
		return []Piece{{Text: text}}
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n")
	from, before := 0, rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !term.Hides(r, before) {
			i, before = i+n, r
			continue
		}
		if from < i {
			list = append(list, Piece{Text: text[from:i]})
		}
		one, tags := Piece{Hidden: true}, ""
		for i < len(text) {
			r, n := utf8.DecodeRuneInString(text[i:])
			if !term.Hides(r, before) {
				break
			}
			if r >= firstTag && r <= lastTag && len(tags) < mostTags {
				tags += string(r - firstTag + ' ')
			}
			if one.Count++; one.Count <= mostSpelled {
				one.Text += fmt.Sprintf("<U+%04X>", r)
			}
			i, before = i+n, r
		}
		if more := one.Count - mostSpelled; more > 0 {
			one.Text += fmt.Sprintf(" and %d more", more)
		}
		if tags != "" {
			one.Text += fmt.Sprintf(" which an agent can read as %q", tags)
		}
		list, from = append(list, one), i
	}
	if from < len(text) {
		list = append(list, Piece{Text: text[from:]})
	}
	return list
}

// Hidden counts the characters of a text that cannot be seen, or that change the order of others,
// as Reveal finds them.
func Hidden(value any) (n int) {
	for _, p := range Reveal(value) {
		n += p.Count
	}
	return n
}

// asText returns a value of any string type, or a pointer to one, as a text.
func asText(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && !v.IsNil() {
		return fmt.Sprint(v.Elem().Interface())
	}
	return fmt.Sprint(value)
}

// printable reports whether a text has nothing but ASCII that can be seen.
func printable(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// markup is about how many bytes a page has around a hidden piece.
const markup = 13

// Size returns about how many bytes a text takes on a page, with all that is spelled out in it.
func Size(value any) (n int) {
	for _, p := range Reveal(value) {
		if n += escaped(p.Text); p.Hidden {
			n += markup
		}
	}
	return n
}

// escaped returns how many bytes a text takes in HTML.
func escaped(text string) int {
	n := len(text)
	for i := range len(text) {
		if strings.IndexByte(`<>&"'+`, text[i]) >= 0 {
			n += len("&#39;") - 1
		}
	}
	return n
}

// Cut returns the beginning of a text as it is shown, of at most about so many bytes of a page.
func Cut(most int, value any) (list []Piece) {
	for _, p := range Reveal(value) {
		size := escaped(p.Text)
		if p.Hidden {
			size += markup
		}
		if size <= most {
			list, most = append(list, p), most-size
			continue
		}
		if !p.Hidden {
			end := 0
			for i, r := range p.Text { // at the beginnings of characters
				if most -= escaped(string(r)); most < 0 {
					break
				}
				end = i + utf8.RuneLen(r)
			}
			list = append(list, Piece{Text: p.Text[:end]})
		}
		return append(list, Piece{Text: "…"})
	}
	return list
}
