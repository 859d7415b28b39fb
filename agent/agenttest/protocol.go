package agenttest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// protocol translates between an API and Request and Reply. Faults, recording and
// counting are the same for all protocols; see exchange.
type protocol struct {
	// parse reads a request.
	parse func(body []byte, r *http.Request) (Request, error)
	// stream returns the events for a request that asks for a stream.
	stream func(Request, Reply) []Chunk
	// whole returns the body for a request that does not.
	whole func(Request, Reply) object
	// errorBody returns the body of an HTTP error and of an error event.
	errorBody func(Reply) object
}

// Chunk is one server-sent event.
type Chunk struct {
	// Event is the event's name; may be empty.
	Event string
	// Data is sent as JSON.
	Data object
	// Served is the usage that this event tells the client beyond the earlier ones.
	Served Usage
}

// protocolOf returns the protocol for a path below a scenario's base URL.
func protocolOf(path string) (protocol, bool) {
	switch {
	case path == "v1/messages":
		return messages, true
	case path == "v1/responses":
		return responses, true
	case strings.HasPrefix(path, "v1beta/models/"):
		return gemini, true
	}
	return protocol{}, false
}

// exchange is one request and its reply.
type exchange struct {
	protocol

	w http.ResponseWriter
	// clientGone is closed when the client gave up.
	clientGone <-chan struct{}
	// testDone is closed when the test is over.
	testDone <-chan struct{}
	req      Request
	reply    Reply
	// served adds usage that the client was told.
	served func(Usage)
}

// send sends the reply or its fault.
func (x *exchange) send() {
	for k, v := range x.reply.Header {
		x.w.Header().Set(k, v)
	}
	switch {
	// Faults come before the protocol, which knows nothing of them.
	case x.reply.Fault == HangStart:
		x.hang()
	case x.reply.Status != 0:
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(x.reply.Status)
		_, _ = x.w.Write(encode(x.errorBody(x.reply)))
	case x.reply.Fault == Garbage:
		x.w.Header().Set("Content-Type", "text/event-stream")
		_, _ = x.w.Write([]byte("\x00\xff{]not a protocol\n\n"))
	case x.req.Stream:
		x.sendStream()
	default:
		x.sendWhole()
	}
}

// sendWhole sends the reply as one JSON body.
func (x *exchange) sendWhole() {
	switch x.reply.Fault {
	// The server closes the connection without an answer.
	case CutStart, CutLate:
		panic(http.ErrAbortHandler)
	case HangMiddle:
		x.hang()
		return
	case ErrorMiddle:
		x.w.WriteHeader(http.StatusInternalServerError)
		_, _ = x.w.Write(encode(x.errorBody(x.reply)))
		return
	default:
	}
	x.served(x.reply.usage())
	x.w.Header().Set("Content-Type", "application/json")
	_, _ = x.w.Write(encode(x.whole(x.req, x.reply)))
}

// sendStream sends the reply as events. Each is counted before it is written, so that a
// client that knows of it finds it counted.
func (x *exchange) sendStream() {
	x.w.Header().Set("Content-Type", "text/event-stream")
	chunks := x.stream(x.req, x.reply)
	for i, c := range chunks {
		// The first event has been sent: the client believes that an answer began.
		if i == 1 {
			switch x.reply.Fault {
			case CutStart:
				panic(http.ErrAbortHandler)
			case HangMiddle:
				x.hang()
				return
			case ErrorMiddle:
				x.write(Chunk{Event: "error", Data: x.errorBody(x.reply)})
				return
			default:
			}
		}
		// All content has been sent; only the stream's end is missing.
		if x.reply.Fault == CutLate && i == len(chunks)-2 {
			panic(http.ErrAbortHandler)
		}
		x.pause(x.reply.Drip)
		x.served(c.Served)
		x.write(c)
	}
}

// write sends one event at once.
func (x *exchange) write(c Chunk) {
	var b strings.Builder
	if c.Event != "" {
		fmt.Fprintf(&b, "event: %s\n", c.Event)
	}
	fmt.Fprintf(&b, "data: %s\n\n", encode(c.Data))
	_, _ = x.w.Write([]byte(b.String()))
	_ = http.NewResponseController(x.w).Flush()
}

// hang waits until the client or the test gives up.
func (x *exchange) hang() { x.pause(time.Hour) }

// pause waits for d, or until the client or the test gives up.
func (x *exchange) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.clientGone:
	case <-x.testDone:
	}
}
