package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// EventKind says which fields of an Event are set.
type EventKind string

// The kinds of events. Each is sent as soon as the back end knows of it; EventStarted
// comes first, and may be missing if the call failed before.
const (
	// EventStarted: Session and Model are known.
	EventStarted EventKind = "started"
	// EventThinking: the agent is thinking; Text has the thoughts, if the CLI
	// shows them.
	EventThinking EventKind = "thinking"
	// EventText: a message of the agent, Text.
	EventText EventKind = "text"
	// EventTool: the agent uses Tool on Text, such as a file.
	EventTool EventKind = "tool"
	// EventToolFailed: Tool failed, because of Text.
	EventToolFailed EventKind = "tool_failed"
	// EventCommandEnded: a command that the agent ran with Tool has ended, and
	// not failed as far as the CLI says; Gemini CLI does not. Text is the last
	// line that it printed, empty if there is none.
	EventCommandEnded EventKind = "command_ended"
	// EventUsage: Usage is the call's total so far.
	EventUsage EventKind = "usage"
	// EventWaiting: the model is overloaded or limits the rate, as Text says,
	// until Until.
	EventWaiting EventKind = "waiting"
	// EventCompacting: the session is too long and is being shortened.
	EventCompacting EventKind = "compacting"
	// EventOutput: a command printed a line, Text.
	EventOutput EventKind = "output"
)

// Event reports progress of a call, in the same form for every back end. Text is
// sanitized and bounded.
type Event struct {
	// Kind says which of the other fields are set.
	Kind EventKind
	// Text is said, thought, printed or the reason, depending on Kind.
	Text string
	// Tool is set for EventTool, EventToolFailed and EventCommandEnded.
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

// LastLine returns the last line of a text that is not blank: what a test run prints there is its
// result.
func LastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexAny(text, "\n\r")+1:]
}

// appendNew appends s to list unless it is there already.
func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
