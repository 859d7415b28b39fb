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

// transcript follows the CLI's output.
type transcript struct {
	dir     string
	sink    func(agent.Event)
	session string
	model   string
	tools   map[string]int
	uses    map[string]bool // ids of tool uses that were counted
	files   []string
	calls   map[string]usage // per message of the model, as far as it is known
	reset   time.Time        // when the limit that rejects requests ends
	result  *message
	garbage int // lines that are no messages
}

func newTranscript(dir, session string, sink func(agent.Event)) *transcript {
	if sink == nil {
		sink = func(agent.Event) {}
	}
	return &transcript{
		dir: dir, session: session, sink: sink,
		tools: map[string]int{}, uses: map[string]bool{}, calls: map[string]usage{},
	}
}

// line takes one line of output.
func (t *transcript) line(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var m message
	err := json.Unmarshal(line, &m)
	var odd *json.UnmarshalTypeError // one field of another type: the rest is there
	if m.Type == "" || err != nil && (!errors.As(err, &odd) || m.Type == "result") {
		t.garbage++
		return
	}
	switch m.Type {
	case "system":
		t.system(&m)
	case "rate_limit_event":
		if m.RateLimit.Status == "rejected" && m.RateLimit.ResetsAt > 0 {
			t.reset = time.Unix(m.RateLimit.ResetsAt, 0).UTC()
			t.sink(agent.Event{Kind: agent.EventWaiting, Text: "rate limited", Until: t.reset})
		}
	case "assistant":
		t.assistant(&m)
	case "user":
		t.toolResult(m.ToolUseResult)
	case "result":
		t.result = &m
		t.named(m.SessionID)
		t.sink(agent.Event{Kind: agent.EventUsage, Usage: t.usage()})
	}
}

func (t *transcript) system(m *message) {
	switch m.Subtype {
	case "init":
		t.model = m.Model
		t.named(m.SessionID)
		t.sink(agent.Event{Kind: agent.EventStarted, Session: t.session, Model: term.Short(t.model, 100)})
	case "api_retry":
		until := time.Now().Add(time.Duration(m.RetryDelayMS) * time.Millisecond)
		t.sink(agent.Event{Kind: agent.EventWaiting, Text: waiting(m), Until: until})
	}
}

// named notes the session's id, if it is one: it becomes part of a path.
func (t *transcript) named(id string) {
	if uuid.MatchString(id) {
		t.session = id
	}
}

func (t *transcript) assistant(m *message) {
	if m.Message.Model == "<synthetic>" {
		return // the CLI's own words about an error; the result has them
	}
	_, known := t.calls[m.Message.ID]
	t.calls[m.Message.ID] = m.Message.Usage // repeated per block, so never added up
	if !known {
		t.sink(agent.Event{Kind: agent.EventUsage, Usage: t.usage()})
	}
	for _, c := range m.Message.Content {
		switch c.Type {
		case "text":
			t.sink(agent.Event{Kind: agent.EventText, Text: term.Short(c.Text, 500)})
		case "tool_use":
			if !t.uses[c.ID] {
				t.uses[c.ID] = true
				t.tools[term.Short(c.Name, 60)]++
			}
			t.sink(agent.Event{Kind: agent.EventTool, Tool: term.Short(c.Name, 60), Text: subject(c.Input)})
		}
	}
}

// subject returns what a tool is used on, for progress.
func subject(input json.RawMessage) string {
	var in struct {
		FilePath string `json:"file_path"`
		Command  string `json:"command"`
		Pattern  string `json:"pattern"`
		Path     string `json:"path"`
	}
	_ = json.Unmarshal(input, &in) // another tool's input has none of these
	for _, s := range []string{in.FilePath, in.Command, in.Pattern, in.Path} {
		if s != "" {
			return term.Short(s, 500)
		}
	}
	return ""
}

// toolResult notes the file that a successful Edit or Write reports.
func (t *transcript) toolResult(data json.RawMessage) {
	var r struct {
		FilePath string          `json:"filePath"`
		Patch    json.RawMessage `json:"structuredPatch"`
	}
	if json.Unmarshal(data, &r) != nil || r.FilePath == "" || r.Patch == nil {
		return
	}
	file := r.FilePath
	if rel, err := filepath.Rel(t.dir, file); err == nil && filepath.IsLocal(rel) {
		file = rel
	}
	if !slices.Contains(t.files, file) {
		t.files = append(t.files, file)
	}
}

// outcome returns what is known, whether or not the call succeeded.
func (t *transcript) outcome() agent.Outcome {
	out := agent.Outcome{
		Session: t.session, Model: term.Short(t.model, 100), Usage: t.usage(), Tools: t.tools, Files: t.files,
	}
	if t.result != nil {
		out.Text = term.Sanitize(t.result.Result)
	}
	return out
}

// usage returns the result's usage, or, while there is none, what the messages
// so far tell: the input, but hardly any of the output, and no cost.
func (t *transcript) usage() forge.Usage {
	if t.result != nil {
		return t.result.usage()
	}
	u := forge.Usage{Calls: 1, Turns: int64(len(t.calls))}
	for _, c := range t.calls {
		u = u.Add(c.forge())
	}
	return u
}

func (u usage) forge() forge.Usage {
	return forge.Usage{
		InputTokens: max(u.Input, 0), OutputTokens: max(u.Output, 0),
		CacheReadTokens: max(u.CacheRead, 0), CacheWriteTokens: max(u.CacheWrite, 0),
	}
}

func (r *result) usage() forge.Usage {
	u := forge.Usage{}
	switch {
	case len(r.ModelUsage) > 0: // includes sub-agents
		for _, m := range r.ModelUsage {
			u = u.Add(usage{m.Input, m.Output, m.CacheRead, m.CacheWrite}.forge())
		}
	case r.Usage != usage{}:
		u = r.Usage.forge()
	default:
		u = usage{Input: r.ContextWindow.TotalInputTokens, Output: r.ContextWindow.TotalOutputTokens}.forge()
	}
	u.Calls, u.Turns, u.CostUSD = 1, max(r.NumTurns, 0), r.Cost.TotalCostUSD
	if r.TotalCostUSD != nil {
		u.CostUSD = *r.TotalCostUSD
	}
	u.CostUSD = max(u.CostUSD, 0)
	return u
}

// answer fills in the structured answer of a call that succeeded.
func (t *transcript) answer(out *agent.Outcome, schema bool) error {
	if !schema {
		return nil
	}
	if s := t.result.StructuredOutput; len(s) > 0 && string(s) != "null" {
		out.Answer = s
		return nil
	}
	if s := jsonObject(t.result.Result); s != nil { // said instead of given
		out.Answer = s
		return nil
	}
	return agent.Fail(forge.FailInvalidOutput, "the agent gave no structured answer; it said: %s", term.Short(t.result.Result, 500))
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
