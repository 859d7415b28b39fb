package agent

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// An event is one line that a person reads.
func TestProgress(t *testing.T) {
	for want, e := range map[string]Event{
		// An agent of one's own need not tell its model.
		"text runs m1, session s":                 {Kind: EventStarted, Model: "m1", Session: "s"},
		"text runs m1":                            {Kind: EventStarted, Model: "m1"},
		"text began, session s":                   {Kind: EventStarted, Session: "s"},
		"text began":                              {Kind: EventStarted},
		"text hello":                              {Kind: EventText, Text: "hello"},
		"thinking why":                            {Kind: EventThinking, Text: "why"},
		"tool Bash make test":                     {Kind: EventTool, Tool: "Bash", Text: "make test"},
		"tool Bash failed: exit 2":                {Kind: EventToolFailed, Tool: "Bash", Text: "exit 2"},
		"tool Bash ended: ok 0.2s":                {Kind: EventCommandEnded, Tool: "Bash", Text: "ok 0.2s"},
		"tool Bash ended":                         {Kind: EventCommandEnded, Tool: "Bash"},
		"output a line":                           {Kind: EventOutput, Text: "a line"},
		"limit later, until 2026-03-01T12:00:00Z": {Kind: EventWaiting, Text: "later", Until: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		"text the conversation is too long and is being shortened": {Kind: EventCompacting},
		"usage ": {Kind: EventUsage, Usage: forge.Usage{Turns: 1}},
	} {
		p := e.Progress("claude")
		if got := string(p.Kind) + " " + p.Text; got != want || p.Agent != "claude" || p.Usage != e.Usage {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The last line that says something is the result of a command.
func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"": "", " \n": "", "one": "one", "one\n": "one", "one\r\ntwo\r\n\n": "two", "50 %\r100 %": "100 %"} {
		if got := LastLine(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
