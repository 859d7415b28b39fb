package agent

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// EventKind says what an event is about.
type EventKind string

// The kinds of events.
const (
	EventStarted    EventKind = "started"     // Session and Model are known
	EventThinking   EventKind = "thinking"    // the agent thinks: Text, if it shows that
	EventText       EventKind = "text"        // the agent said something: Text
	EventTool       EventKind = "tool"        // the agent uses Tool on Text
	EventToolFailed EventKind = "tool_failed" // Tool could not do it, because of Text
	EventUsage      EventKind = "usage"       // Usage is the sum so far of this call
	EventWaiting    EventKind = "waiting"     // the model is overloaded or limits the rate: Text, until Until
	EventCompacting EventKind = "compacting"  // the conversation is too long and is being shortened
	EventOutput     EventKind = "output"      // a line that a command printed: Text
)

// Event is something that happens during a call, in the same form for every
// back end. Text is sanitized and bounded.
type Event struct {
	Kind    EventKind
	Text    string
	Tool    string
	Session string
	Model   string
	Usage   forge.Usage
	Until   time.Time
}

// maxEventText bounds an event's text, in characters.
const maxEventText = 500

func short(text string) string { return term.Short(text, maxEventText) }

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
