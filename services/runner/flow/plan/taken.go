package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// Taken has the names of the text of an intent: the one that was taken, and the newest where
// it came from. What is worked on is the text that was taken, whatever becomes of it there.
type Taken struct {
	// Text names the text that was taken.
	Text string
	// Later names the one that the publisher sent last; empty while that is the one that was taken.
	Later string
	// At is when Later was told the last time that it changed.
	At time.Time
	// Changes counts how often it has.
	Changes int
}

// maxTextChanges bounds how often another text is remembered: each time is a
// record with all of it, and whoever may edit an issue may do so for ever.
const maxTextChanges = 20

// textName returns the name of the text of an intent.
func textName(in *forge.Intent) string { return messages.HashText(in.Title, in.Body)[:12] }

// Take remembers the text of a new intent.
func (t *Taken) Take(in *forge.Intent) { *t = Taken{Text: textName(in)} }

// Again takes the text with which the publisher repeats its event, and reports whether that
// is news. The last change that is remembered is one to another text, so that whoever edits
// more often than that leaves no text behind which is taken for the one that was asked for.
func (t *Taken) Again(in *forge.Intent, at time.Time) bool {
	now, most := textName(in), maxTextChanges
	if now == t.Text {
		now, most = "", maxTextChanges-1
	}
	if now == t.Later || t.Changes >= most {
		return false
	}
	t.Later, t.At, t.Changes = now, at, t.Changes+1
	return true
}

// Words says that the text was edited, for people; empty if it was not.
func (t *Taken) Words(system string) string {
	if t.Later == "" {
		return ""
	}
	return fmt.Sprintf("its text was edited at %s after it was taken, and what is worked on is the one that was taken (seen %s)",
		system, t.At.UTC().Format(time.RFC3339))
}

// Beside returns a reason to wait, or none, with Words in its first line, which
// is all that lists show.
func (t *Taken) Beside(reason, system string) string {
	words := t.Words(system)
	if reason == "" || words == "" {
		return reason + words
	}
	first, rest, more := strings.Cut(reason, "\n")
	if more {
		rest = "\n" + rest
	}
	return first + "; " + words + rest
}

// Edited returns an intent with the fields of an edit.
func Edited(in forge.Intent, e *forge.Edit) forge.Intent {
	if e.Title != nil {
		in.Title = *e.Title
	}
	if e.Body != nil {
		in.Body = *e.Body
	}
	if e.Type != nil {
		in.Type = *e.Type
	}
	if e.Risk != nil {
		in.Risk = *e.Risk
	}
	return in
}
