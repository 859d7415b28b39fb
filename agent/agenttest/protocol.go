package agenttest

import (
	"fmt"
	"net/http"
	"strings"
)

// protocol is how a model's API says things.
type protocol struct {
	parse  func(body []byte, r *http.Request) (Request, error)
	whole  func(Request, Reply) object
	stream func(http.ResponseWriter, Request, Reply)
	failed func(Reply) object
}

// protocolOf returns the protocol that a path below a scenario's base URL
// belongs to; nil if there is none.
func protocolOf(path string) *protocol {
	switch {
	case path == "v1/messages":
		return &protocol{
			parse:  func(body []byte, r *http.Request) (Request, error) { return parseRequest(body, r.Header) },
			whole:  whole,
			stream: stream,
			failed: func(r Reply) object {
				return object{"type": "error", "error": object{"type": r.ErrorType, "message": r.Text}}
			},
		}
	case path == "v1/responses":
		return &protocol{parse: parseResponses, whole: wholeResponse, stream: streamResponse, failed: func(r Reply) object {
			return object{"error": object{"type": r.ErrorType, "code": r.ErrorType, "message": r.Text}}
		}}
	case strings.HasPrefix(path, "v1beta/models/"):
		return &protocol{parse: parseGemini, whole: wholeGemini, stream: streamGemini, failed: func(r Reply) object {
			return object{"error": object{"code": r.Status, "status": r.ErrorType, "message": r.Text}}
		}}
	}
	return nil
}

// send writes one server-sent event; name may be empty.
func send(w http.ResponseWriter, name string, data object) {
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", encode(data))
	_ = http.NewResponseController(w).Flush()
}
