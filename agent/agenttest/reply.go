package agenttest

import (
	"encoding/json"
	"time"
)

// Reply is the model's answer, or the way in which it fails.
type Reply struct {
	// Thinking comes before Text. Only the Messages API sends it.
	Thinking string
	// Text is the message, or that of an error.
	Text string
	// Tool is called after the text, with Input.
	Tool string
	// Input is sent as JSON.
	Input any
	// Beside are replies whose tools are called at the same time. Only the Messages API sends them.
	Beside []Reply
	// StopReason is sent by the Messages API; empty means tool_use or end_turn.
	StopReason string
	// Usage is counted for the reply; zero means 100 in, 20 out.
	Usage Usage

	// Status, if it is not 0, makes the reply an HTTP error.
	Status int
	// ErrorType is the type of an error, such as overloaded_error.
	ErrorType string
	// Header has further headers, such as Retry-After.
	Header map[string]string
	// Fault breaks the reply on its way.
	Fault Fault
	// Drip is the pause before each event of a stream.
	Drip time.Duration
}

// Fault says how a reply breaks on its way.
type Fault int

// The faults. A reply that is no stream is cut, or hangs, as a whole.
const (
	Sound       Fault = iota
	CutStart          // the connection breaks after the stream's first event
	CutLate           // the connection breaks after all content, before the stream's end
	HangStart         // no answer, until the client gives up
	HangMiddle        // the stream begins, and stops before its content
	Garbage           // the answer follows no protocol
	ErrorMiddle       // the stream begins, and ends with an error event of ErrorType and Text
)

// Usage is the number of tokens of a reply.
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Say returns a step that replies with text.
func Say(text string) Step {
	return func(Request) Reply { return Reply{Text: text} }
}

// Use returns a step that calls a tool.
func Use(tool string, input any) Step {
	return func(Request) Reply { return Reply{Tool: tool, Input: input} }
}

// UseIn returns a step that calls a tool whose input depends on the agent's working
// directory.
func UseIn(tool string, input func(dir string) any) Step {
	return func(r Request) Reply { return Reply{Tool: tool, Input: input(r.Dir)} }
}

// Answer returns a step that gives Claude Code's structured answer.
func Answer(answer any) Step { return Use("StructuredOutput", answer) }

// SayJSON returns a step that replies with a value as JSON text, for CLIs without a
// tool that takes the answer.
func SayJSON(v any) Step { return Say(string(encode(v))) }

// Fail returns a step that replies with an HTTP error.
func Fail(status int, errorType, message string) Step {
	return Always(Reply{Status: status, ErrorType: errorType, Text: message})
}

// Always returns a step that gives this reply.
func Always(r Reply) Step { return func(Request) Reply { return r } }

// usage returns Usage, or its default if that is zero.
func (r Reply) usage() Usage {
	if r.Usage == (Usage{}) {
		return Usage{Input: 100, Output: 20}
	}
	return r.Usage
}

type object = map[string]any

// encode returns v as JSON. It panics if that is impossible, which is a mistake of the
// test.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
