package agenttest

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
)

// Reply is what the model says, or how it fails.
type Reply struct {
	Text       string // said, or the message of an error
	Tool       string // called after the text
	Input      any    // of the tool
	StopReason string // empty means tool_use or end_turn
	Usage      Usage  // zero means 100 in, 20 out

	Status    int               // not 0: an HTTP error
	ErrorType string            // of an HTTP error, such as overloaded_error
	Header    map[string]string // of an HTTP error, such as Retry-After
	Cut       bool              // the stream ends in the middle
	Hang      bool              // no answer, until the client gives up
}

// Usage is what the model counts.
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

// Say replies with text.
func Say(text string) Step {
	return func(Request) Reply { return Reply{Text: text} }
}

// Use replies with a call of a tool.
func Use(tool string, input any) Step {
	return func(Request) Reply { return Reply{Tool: tool, Input: input} }
}

// UseIn replies with a call of a tool whose input depends on the directory that
// the agent works in.
func UseIn(tool string, input func(dir string) any) Step {
	return func(r Request) Reply { return Reply{Tool: tool, Input: input(r.Dir)} }
}

// Answer replies with the structured answer.
func Answer(answer any) Step { return Use("StructuredOutput", answer) }

// Fail replies with an HTTP error.
func Fail(status int, errorType, message string) Step {
	return func(Request) Reply { return Reply{Status: status, ErrorType: errorType, Text: message} }
}

func (r Reply) usage() Usage {
	if r.Usage == (Usage{}) {
		return Usage{Input: 100, Output: 20}
	}
	return r.Usage
}

func (r Reply) stop() string {
	switch {
	case r.StopReason != "":
		return r.StopReason
	case r.Tool != "":
		return "tool_use"
	}
	return "end_turn"
}

type object = map[string]any

// content returns the reply's blocks. Tool inputs are kept as JSON text.
func (r Reply) content() []object {
	var out []object
	if r.Text != "" || r.Tool == "" {
		out = append(out, object{"type": "text", "text": r.Text})
	}
	if r.Tool != "" {
		out = append(out, object{"type": "tool_use", "id": "toolu_" + rand.Text(), "name": r.Tool, "input": r.Input})
	}
	return out
}

// encode returns v as JSON; a test that scripts what is none is mistaken.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

func message(req Request, content []object, stop any, usage Usage) object {
	return object{
		"id": "msg_" + rand.Text(), "type": "message", "role": "assistant", "model": req.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil, "usage": usage,
	}
}

func whole(req Request, r Reply) object {
	return message(req, r.content(), r.stop(), r.usage())
}

// stream writes the reply as server-sent events.
func stream(w http.ResponseWriter, req Request, r Reply) {
	event := func(kind string, data object) {
		data["type"] = kind
		send(w, kind, data)
	}
	start := r.usage()
	start.Output = 1
	event("message_start", object{"message": message(req, []object{}, nil, start)})
	if r.Cut {
		panic(http.ErrAbortHandler)
	}
	for i, b := range r.content() {
		open, delta := split(b)
		event("content_block_start", object{"index": i, "content_block": open})
		event("content_block_delta", object{"index": i, "delta": delta})
		event("content_block_stop", object{"index": i})
	}
	event("message_delta", object{"delta": object{"stop_reason": r.stop(), "stop_sequence": nil}, "usage": r.usage()})
	event("message_stop", object{})
}

// split returns a block as it is opened, and what fills it.
func split(b object) (open, delta object) {
	if b["type"] == "text" {
		return object{"type": "text", "text": ""}, object{"type": "text_delta", "text": b["text"]}
	}
	return object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}},
		object{"type": "input_json_delta", "partial_json": string(encode(b["input"]))}
}
