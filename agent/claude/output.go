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

// Bounds of texts in events, in characters.
const (
	maxName       = 100
	maxText       = 500
	maxTranscript = 8000 // for the transcript; who watches is shown the beginning
	maxSubject    = 200
)

// errBudget ends a call whose budget is spent while the CLI goes on.
var errBudget = errors.New("spent its budget")

// outputReader reads the CLI's output, sends events, and collects the outcome. Its
// methods are called by one goroutine at a time.
type outputReader struct {
	// dir is the checkout; paths are shown relative to it.
	dir  string
	sink func(agent.Event)
	// counted returns the exact usage from the connection; nil if there is no gateway.
	counted func() forge.Usage
	// budget is in USD; 0 means none.
	budget float64
	// stop ends the call; may be nil.
	stop func(error)

	session string
	model   string
	tools   map[string]int
	// uses has the names of the used tools, by the id of their use.
	uses       map[string]string
	files      []string
	meter      *usageMeter
	compacting bool
	// limitReset is the end of the limit that rejects requests.
	limitReset time.Time
	// apiErrorKind is the CLI's name for the last error of the model's API.
	apiErrorKind string
	result       *message
	// garbage counts lines that are no messages; firstGarbage shows the first of them.
	garbage int
	// firstGarbage is cut to maxSubject characters.
	firstGarbage string
}

// newOutputReader returns a reader for a call in dir. session is the id it was started
// with; sink may be nil.
func newOutputReader(dir, session string, sink func(agent.Event)) *outputReader {
	if sink == nil {
		sink = func(agent.Event) {}
	}
	return &outputReader{
		dir: dir, session: session, sink: sink, meter: newUsageMeter(),
		tools: map[string]int{}, uses: map[string]string{},
	}
}

// onLine takes one line of output. A message with a field of an unexpected type is used
// as far as it could be read, unless it is the result.
func (t *outputReader) onLine(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var m message
	err := json.Unmarshal(line, &m)
	var odd *json.UnmarshalTypeError // one field of another type: the rest is there
	// A result is trusted only if it could be read completely.
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

// onSystem takes the CLI's messages about itself: start, retries, compacting.
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

// setSession stores the session's id. It becomes part of a path, so others are ignored.
func (t *outputReader) setSession(id string) {
	if agent.IsSessionID(id) {
		t.session = id
	}
}

// emitUsage sends the usage so far.
func (t *outputReader) emitUsage() { t.sink(agent.Event{Kind: agent.EventUsage, Usage: t.usage()}) }

// onStreamEvent follows a message of the model while it is streamed.
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

// enforceBudget ends the call when the model begins another message although the budget
// is spent. The message that spent it was received whole, and its tools have run.
func (t *outputReader) enforceBudget(id string) {
	if t.budget <= 0 || t.stop == nil || t.meter.has(id) {
		return
	}
	if t.usage().CostUSD >= t.budget {
		t.stop(errBudget)
	}
}

// onAssistant takes a complete message of the model, or one that the CLI itself wrote
// in its place about an error.
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

// subject returns the file, command or pattern that a tool is used on.
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

// relative returns path relative to the checkout, if it is in it.
func (t *outputReader) relative(path string) string {
	if rel, err := filepath.Rel(t.dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// onUser takes the results of tools: it reports those that failed, and those of
// commands, and adds the file of a successful Edit or Write to the outcome.
func (t *outputReader) onUser(m *message) {
	for _, c := range m.Message.Content {
		if c.Type != "tool_result" {
			continue
		}
		tool := t.uses[c.ToolUseID]
		switch {
		case c.IsError:
			why := strings.TrimSuffix(strings.TrimPrefix(c.Content.text(), "<tool_use_error>"), "</tool_use_error>")
			t.sink(agent.Event{Kind: agent.EventToolFailed, Tool: tool, Text: term.Short(why, maxSubject)})
		case tool == "Bash":
			t.sink(agent.Event{Kind: agent.EventCommandEnded, Tool: tool, Text: term.Short(agent.LastLine(c.Content.text()), maxSubject)})
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

// outcome returns the outcome as far as the output went, whether or not the call
// succeeded.
func (t *outputReader) outcome() agent.Outcome {
	out := agent.Outcome{Session: t.session, Model: t.model, Usage: t.usage(), Tools: t.tools, Files: t.files}
	if t.result == nil {
		return out
	}
	out.Text = term.Sanitize(t.result.Result)
	out.Denied = t.denied()
	// Some answers are written as text instead of given by the tool.
	if s := t.result.StructuredOutput; len(s) > 0 && string(s) != "null" {
		out.Answer = s
	} else {
		out.Answer = jsonObject(t.result.Result)
	}
	return out
}

// maxDenied bounds how many denied uses of tools are reported.
const maxDenied = 10

// denied returns the uses of tools that the CLI did not allow, each once.
func (t *outputReader) denied() []string {
	var out []string
	for _, d := range t.result.Denials {
		use := strings.TrimSpace(term.Short(d.Tool, maxName) + " " + t.subject(d.Input))
		if !slices.Contains(out, use) && len(out) < maxDenied {
			out = append(out, use)
		}
	}
	return out
}

// jsonObject returns the JSON object that a text consists of, with or without a code
// fence; nil if it is anything else.
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
