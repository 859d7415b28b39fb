package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of what is told about an event, in characters.
const (
	maxName       = 100
	maxText       = 500
	maxTranscript = 8000 // for the transcript; who watches is shown the beginning
	maxSubject    = 200
)

// errBudget ends a call in the middle of its work.
var errBudget = errors.New("spent its budget")

// transcript follows the CLI's output.
type outputReader struct {
	dir     string
	sink    func(agent.Event)
	counted func() forge.Usage // counted by somebody else; may be nil
	budget  float64            // in USD; 0 means none
	stop    func(error)        // ends the call; may be nil

	session      string
	model        string
	tools        map[string]int
	uses         map[string]string // names of the tools, by the id of their use
	files        []string
	meter        *usageMeter
	compacting   bool
	limitReset   time.Time // when the limit that rejects requests ends
	apiErrorKind string    // of the last error of the model's API, in the CLI's words
	result       *message
	garbage      int    // lines that are no messages
	firstGarbage string // the first of them
}

func newOutputReader(dir, session string, sink func(agent.Event)) *outputReader {
	if sink == nil {
		sink = func(agent.Event) {}
	}
	return &outputReader{
		dir: dir, session: session, sink: sink, meter: newUsageMeter(),
		tools: map[string]int{}, uses: map[string]string{},
	}
}

// onLine takes one line of output.
func (t *outputReader) onLine(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var m message
	err := json.Unmarshal(line, &m)
	var odd *json.UnmarshalTypeError // one field of another type: the rest is there
	if m.Type == "" || err != nil && (!errors.As(err, &odd) || m.Type == "result") {
		if t.garbage++; t.firstGarbage == "" {
			t.firstGarbage = term.Short(string(line), maxSubject)
		}
		return
	}
	switch m.Type {
	case "system":
		t.onSystem(&m)
	case "rate_limit_event":
		if m.RateLimit.Status == "rejected" && m.RateLimit.ResetsAt > 0 {
			t.limitReset = time.Unix(m.RateLimit.ResetsAt, 0).UTC()
			t.sink(agent.Event{Kind: agent.EventWaiting, Text: "rate limited", Until: t.limitReset})
		}
	case "stream_event":
		t.onStreamEvent(&m)
	case "assistant":
		t.onAssistant(&m)
	case "user":
		t.onUser(&m)
	case "result":
		t.result = &m
		t.setSession(m.SessionID)
		t.emitUsage()
	}
}

func (t *outputReader) onSystem(m *message) {
	switch m.Subtype {
	case "init":
		t.model = term.Short(m.Model, maxName)
		t.setSession(m.SessionID)
		t.sink(agent.Event{Kind: agent.EventStarted, Session: t.session, Model: t.model})
	case "api_retry":
		until := time.Now().Add(time.Duration(m.RetryDelayMS) * time.Millisecond)
		t.sink(agent.Event{Kind: agent.EventWaiting, Text: waitingText(m), Until: until})
	case "status":
		if m.Status == "compacting" && !t.compacting {
			t.sink(agent.Event{Kind: agent.EventCompacting, Text: "shortens the conversation"})
		}
		t.compacting = m.Status == "compacting"
	}
}

// setSession notes the session's id, if it is one: it becomes part of a path.
func (t *outputReader) setSession(id string) {
	if agent.IsSessionID(id) {
		t.session = id
	}
}

func (t *outputReader) emitUsage() { t.sink(agent.Event{Kind: agent.EventUsage, Usage: t.usage()}) }

// onStreamEvent follows a message of the model while it is being said.
func (t *outputReader) onStreamEvent(m *message) {
	e := &m.Event
	switch e.Type {
	case "message_start":
		t.enforceBudget(e.Message.ID)
		t.meter.current[m.Parent] = e.Message.ID
		t.meter.update(e.Message.ID, e.Message.Model, e.Message.Usage)
		t.emitUsage()
	case "content_block_start":
		if e.Block.Type == "thinking" {
			t.sink(agent.Event{Kind: agent.EventThinking})
		}
	case "content_block_delta":
		if s := t.meter.messages[t.meter.current[m.Parent]]; s != nil {
			s.streamedBytes += len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.JSON)
		}
	case "message_delta":
		if id := t.meter.current[m.Parent]; id != "" {
			t.meter.update(id, "", e.Usage).final = true
			t.emitUsage()
		}
	}
}

// enforceBudget ends the call when the model begins another message although the budget is
// spent. The one that spent it has been said, and what it asked for was done.
func (t *outputReader) enforceBudget(id string) {
	if t.budget <= 0 || t.stop == nil || t.meter.has(id) {
		return
	}
	if t.usage().CostUSD >= t.budget {
		t.stop(errBudget)
	}
}

func (t *outputReader) onAssistant(m *message) {
	if m.Message.Model == "<synthetic>" {
		t.apiErrorKind = string(m.Error) // the CLI's own words about an error; the result has them
		return
	}
	if !t.meter.has(m.Message.ID) { // it did not come as a stream
		t.enforceBudget(m.Message.ID)
		t.meter.update(m.Message.ID, m.Message.Model, m.Message.Usage).final = true
		defer t.emitUsage()
	}
	for _, c := range m.Message.Content {
		switch c.Type {
		case "thinking":
			if text := term.Short(c.Thinking, maxTranscript); text != "" {
				t.sink(agent.Event{Kind: agent.EventThinking, Text: text})
			}
		case "text":
			t.sink(agent.Event{Kind: agent.EventText, Text: term.Short(c.Text, maxTranscript)})
		case "tool_use":
			name := term.Short(c.Name, maxName)
			if _, counted := t.uses[c.ID]; !counted {
				t.uses[c.ID] = name
				t.tools[name]++
			}
			t.sink(agent.Event{Kind: agent.EventTool, Tool: name, Text: t.subject(c.Input)})
		}
	}
}

// subject returns what a tool is used on, for progress.
func (t *outputReader) subject(input json.RawMessage) string {
	var in struct {
		FilePath string `json:"file_path"`
		Command  string `json:"command"`
		Pattern  string `json:"pattern"`
		Path     string `json:"path"`
	}
	_ = json.Unmarshal(input, &in) // another tool's input has none of these
	if in.FilePath != "" {
		in.FilePath = t.relative(in.FilePath)
	}
	for _, s := range []string{in.FilePath, in.Command, in.Pattern, in.Path} {
		if s != "" {
			return term.Short(s, maxSubject)
		}
	}
	return ""
}

// relative returns a path as seen from the checkout, if it is in it.
func (t *outputReader) relative(path string) string {
	if rel, err := filepath.Rel(t.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// onUser tells which tools failed, and notes the file that a successful Edit or
// Write reports.
func (t *outputReader) onUser(m *message) {
	for _, c := range m.Message.Content {
		if c.Type == "tool_result" && c.IsError {
			why := strings.TrimSuffix(strings.TrimPrefix(c.Content.text(), "<tool_use_error>"), "</tool_use_error>")
			t.sink(agent.Event{Kind: agent.EventToolFailed, Tool: t.uses[c.ToolUseID], Text: term.Short(why, maxSubject)})
		}
	}
	var r struct {
		FilePath string          `json:"filePath"`
		Patch    json.RawMessage `json:"structuredPatch"`
	}
	if json.Unmarshal(m.ToolUseResult, &r) != nil || r.FilePath == "" || r.Patch == nil {
		return
	}
	if file := t.relative(r.FilePath); !slices.Contains(t.files, file) {
		t.files = append(t.files, file)
	}
}

// outcome returns what is known, whether or not the call succeeded.
func (t *outputReader) outcome() agent.Outcome {
	out := agent.Outcome{Session: t.session, Model: t.model, Usage: t.usage(), Tools: t.tools, Files: t.files}
	if t.result == nil {
		return out
	}
	out.Text = term.Sanitize(t.result.Result)
	if s := t.result.StructuredOutput; len(s) > 0 && string(s) != "null" {
		out.Answer = s
	} else {
		out.Answer = jsonObject(t.result.Result) // said instead of given
	}
	return out
}

// jsonObject returns the object that a text consists of, perhaps in a fence.
func jsonObject(s string) []byte {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "```"); ok {
		s = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```"))
	}
	if !strings.HasPrefix(s, "{") || !json.Valid([]byte(s)) {
		return nil
	}
	return []byte(s)
}
