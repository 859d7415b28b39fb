package agent

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// EventKind says which fields of an Event are set.
type EventKind string

// The kinds of events. Each is sent as soon as the back end knows of it; EventStarted
// comes first, and may be missing if the call failed before.
const (
	EventStarted    EventKind = "started"     // Session and Model are known
	EventThinking   EventKind = "thinking"    // the agent is thinking: Text, if the CLI shows it
	EventText       EventKind = "text"        // a message of the agent: Text
	EventTool       EventKind = "tool"        // the agent uses Tool on Text, such as a file
	EventToolFailed EventKind = "tool_failed" // Tool failed, because of Text
	EventUsage      EventKind = "usage"       // Usage is the call's total so far
	EventWaiting    EventKind = "waiting"     // the model is overloaded or limits the rate: Text, until Until
	EventCompacting EventKind = "compacting"  // the session is too long and is being shortened
	EventOutput     EventKind = "output"      // a line that a command printed: Text
)

// Event reports progress of a call, in the same form for every back end. Text is
// sanitized and bounded.
type Event struct {
	// Kind says which of the other fields are set.
	Kind EventKind
	// Text is said, thought, printed or the reason, depending on Kind.
	Text string
	// Tool is set for EventTool and EventToolFailed.
	Tool string
	// Session and Model are set for EventStarted.
	Session string
	Model   string
	// Usage is the call's total so far, not an increment. Set for EventUsage.
	Usage forge.Usage
	// Until is set for EventWaiting if the end of the wait is known.
	Until time.Time
}

// maxEventText bounds an event's text, in characters.
const maxEventText = 500

// short returns text on one line, cut to maxEventText characters.
func short(text string) string { return term.Short(text, maxEventText) }

// appendNew appends s to list unless it is there already.
func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
