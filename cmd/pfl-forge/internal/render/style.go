package render

import "github.com/pfl-forge/pfl-forge"

// Style colours text where colours are wanted; the zero value leaves it as it is.
type Style struct {
	Colour bool
}

// paint puts a text between the escape sequences of a colour.
func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold is for what the eye has to find.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Faint is for what the eye may skip.
func (s Style) Faint(text string) string { return s.paint("2", text) }

// Good is for what succeeded.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Bad is for what failed.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Attention is for what waits for a person.
func (s Style) Attention(text string) string { return s.paint("33", text) }

// Tone colours a text by how it is meant.
func (s Style) Tone(t Tone, text string) string {
	switch t {
	case Plain:
		return text
	case Good:
		return s.Good(text)
	case Bad:
		return s.Bad(text)
	case Attention:
		return s.Attention(text)
	}
	return text
}

// Status colours a text about an intent by how the intent is.
func (s Style) Status(sum *forge.Summary, text string) string {
	switch {
	case sum.Status == forge.StatusDone:
		return s.Good(text)
	case sum.Status.Failed():
		return s.Bad(text)
	case sum.Waiting != "":
		return s.Attention(text)
	}
	return text
}

// Marked returns the line that the keys act on in reversed colours. The caller resets
// them at the end of the line.
func (s Style) Marked(text string) string {
	if !s.Colour {
		return text
	}
	return "\x1b[7m" + text
}
