package kit

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// WithReason returns "text: reason", or the text alone if there is no reason.
func WithReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// Safe returns a text that others wrote (a person, an agent, a server) without anything
// that would steer a terminal. Its lines are kept, but for empty ones at its end.
func Safe(s string) string { return strings.TrimRight(term.Sanitize(s), "\n") }

// Indent returns a text with a prefix before each of its lines.
func Indent(s, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by)
}

// Heading prints the title of a section of a description, after an empty line.
func (a *App) Heading(text string) {
	fmt.Fprintf(a.Out, "\n%s\n", a.Style(a.Out).Bold(text))
}

// Field prints "name: value" as a line of a description, and nothing if the value is
// empty.
func (a *App) Field(name, value string) {
	if value != "" {
		fmt.Fprintf(a.Out, "%-12s %s\n", name+":", value)
	}
}

// Commands prints the section of a description that lists what a person can do, as they
// type it, and nothing if there is nothing.
func (a *App) Commands(list []string) {
	if len(list) == 0 {
		return
	}
	a.Heading("what you can do")
	for _, c := range list {
		fmt.Fprintf(a.Out, "  > %s\n", a.Pasted(c))
	}
}
