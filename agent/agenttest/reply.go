package agenttest

import (
	"encoding/json"
	"time"
)

// Reply is what the model says, or how it fails.
type Reply struct {
	Thinking   string // before the text
	Text       string // said, or the message of an error
	Tool       string // called after the text
	Input      any    // of the tool
	StopReason string // empty means tool_use or end_turn
	Usage      Usage  // zero means 100 in, 20 out

	Status    int               // not 0: an HTTP error
	ErrorType string            // of an error, such as overloaded_error
	Header    map[string]string // such as Retry-After
	Fault     Fault
	Drip      time.Duration // between the events of a stream
}

// Fault is what goes wrong on the wire.
type Fault int

// The faults. A reply that is no stream is cut, or hangs, as a whole.
const (
	Sound       Fault = iota
	CutStart          // the connection breaks after the stream's first event
	CutLate           // the connection breaks when all of the content is there, before the stream says so
	HangStart         // no answer, until the client gives up
	HangMiddle        // the stream begins, and stops before its content
	Garbage           // the answer is no protocol
	ErrorMiddle       // the stream begins, and ends with an error event of ErrorType and Text
)

// Usage is what the model counts.
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

// SayJSON replies with a value as JSON text, which is how a model answers where no
// tool takes the answer.
func SayJSON(v any) Step { return Say(string(encode(v))) }

// Fail replies with an HTTP error.
func Fail(status int, errorType, message string) Step {
	return Always(Reply{Status: status, ErrorType: errorType, Text: message})
}

// Always is a step that gives this reply.
func Always(r Reply) Step { return func(Request) Reply { return r } }

func (r Reply) usage() Usage {
	if r.Usage == (Usage{}) {
		return Usage{Input: 100, Output: 20}
	}
	return r.Usage
}

type object = map[string]any

// encode returns v as JSON; a test that scripts what is none is mistaken.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
