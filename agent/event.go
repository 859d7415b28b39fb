package agent

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// EventKind says what an event is about.
type EventKind string

// The kinds of events.
const (
	EventStarted EventKind = "started" // Session and Model are known
	EventText    EventKind = "text"    // the agent said something: Text
	EventTool    EventKind = "tool"    // the agent uses Tool on Text
	EventUsage   EventKind = "usage"   // Usage is the sum so far
	EventWaiting EventKind = "waiting" // the model is overloaded or limits the rate: Text, until Until
	EventOutput  EventKind = "output"  // a line that a command printed: Text
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
