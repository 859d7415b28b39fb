package agenttest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// messages is the Messages API, which Claude Code and opencode speak.
var messages = protocol{
	parse: parseMessages, stream: streamMessages, whole: wholeMessage,
	errorBody: func(r Reply) object {
		return object{"type": "error", "error": object{"type": r.ErrorType, "message": r.Text}}
	},
}

// block is a part of a message's content.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
}

// blocks is content that is either a string or a list of blocks.
type blocks []block

// UnmarshalJSON accepts both forms.
func (b *blocks) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*b = blocks{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(data, (*[]block)(b))
}

// text returns the texts of all blocks.
func (b blocks) text() string {
	var out []string
	for _, x := range b {
		if x.Type == "text" {
			out = append(out, x.Text)
		}
	}
	return strings.Join(out, "\n")
}

// workingDir finds the directory that Claude Code names in its prompt.
var workingDir = pattern.New(`(?m)[Ww]orking directory: (.+)$`)

// parseMessages reads a request.
func parseMessages(body []byte, h *http.Request) (Request, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		System   blocks `json:"system"`
		Messages []struct {
			Role    string `json:"role"`
			Content blocks `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
			// Deferred says that the model is not shown the tool until it searches for it.
			Deferred bool `json:"defer_loading"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("the request is no JSON: %w", err)
	}
	r := Request{Header: h.Header, Model: in.Model, Stream: in.Stream, System: in.System.text(), Body: body}
	for _, t := range in.Tools {
		if !t.Deferred {
			r.Tools = append(r.Tools, t.Name)
		}
	}
	// The directory is in the system prompt or, in some versions, in a message.
	all := []string{r.System}
	for _, m := range in.Messages {
		all = append(all, m.Content.text())
		if m.Role != "user" {
			continue
		}
		if text := m.Content.text(); text != "" {
			r.LastUser = text
		}
		var results []string
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				r.ToolResults++
				results = append(results, resultText(b.Content))
			}
		}
		if len(results) > 0 {
			r.LastResult = strings.Join(results, "\n")
		}
	}
	// A session that is resumed in another checkout is told of it last.
	if found := workingDir.FindAllStringSubmatch(strings.Join(all, "\n"), -1); len(found) > 0 {
		r.Dir, _, _ = strings.Cut(strings.TrimSpace(found[len(found)-1][1]), " (was ")
	}
	return r, nil
}

// resultText returns the text of a tool's result.
func resultText(content json.RawMessage) string {
	var b blocks
	if json.Unmarshal(content, &b) != nil {
		return string(content)
	}
	return b.text()
}

// content returns the reply's blocks.
func (r Reply) content() []object {
	var out []object
	if r.Thinking != "" {
		out = append(out, object{"type": "thinking", "thinking": r.Thinking, "signature": rand.Text()})
	}
	if r.Text != "" || r.Tool == "" {
		out = append(out, object{"type": "text", "text": r.Text})
	}
	for _, one := range append([]Reply{r}, r.Beside...) {
		if one.Tool != "" {
			out = append(out, object{"type": "tool_use", "id": "toolu_" + rand.Text(), "name": one.Tool, "input": one.Input})
		}
	}
	return out
}

// stop returns the reply's stop reason.
func (r Reply) stop() string {
	switch {
	case r.StopReason != "":
		return r.StopReason
	case r.Tool != "":
		return "tool_use"
	}
	return "end_turn"
}

// message returns the message object.
func message(req Request, content []object, stop any, usage Usage) object {
	return object{
		"id": "msg_" + rand.Text(), "type": "message", "role": "assistant", "model": req.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
}

// wholeMessage returns a complete message.
func wholeMessage(req Request, r Reply) object {
	return message(req, r.content(), r.stop(), r.usage())
}

// streamMessages returns the events of a message. The first has the input tokens and
// one of the output, message_delta the rest.
func streamMessages(req Request, r Reply) []Chunk {
	var out []Chunk
	event := func(kind string, data object, served Usage) {
		data["type"] = kind
		out = append(out, Chunk{Event: kind, Data: data, Served: served})
	}
	start := r.usage()
	rest := start.Output
	// As the real API does, with the rest in message_delta.
	start.Output = min(1, rest)
	event("message_start", object{"message": message(req, []object{}, nil, start)}, start)
	for i, b := range r.content() {
		open, deltas := openBlock(b)
		event("content_block_start", object{"index": i, "content_block": open}, Usage{})
		for _, d := range deltas {
			event("content_block_delta", object{"index": i, "delta": d}, Usage{})
		}
		event("content_block_stop", object{"index": i}, Usage{})
	}
	delta := object{"stop_reason": r.stop(), "stop_sequence": nil}
	event("message_delta", object{"delta": delta, "usage": r.usage()}, Usage{Output: rest - start.Output})
	event("message_stop", object{}, Usage{})
	return out
}

// openBlock returns a block as it is opened, and the deltas that fill it.
func openBlock(b object) (open object, deltas []object) {
	switch b["type"] {
	case "text":
		return object{"type": "text", "text": ""}, []object{{"type": "text_delta", "text": b["text"]}}
	case "thinking":
		return object{"type": "thinking", "thinking": "", "signature": ""}, []object{
			{"type": "thinking_delta", "thinking": b["thinking"]},
			{"type": "signature_delta", "signature": b["signature"]},
		}
	}
	return object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}},
		[]object{{"type": "input_json_delta", "partial_json": string(encode(b["input"]))}}
}
