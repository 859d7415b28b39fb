package agenttest

import "net/http"

// Request is a CLI's request to the model, in the same form for all APIs.
type Request struct {
	// N counts the scenario's requests, from 0.
	N      int
	Header http.Header
	Model  string
	Stream bool
	// System has all parts of the system prompt.
	System string
	// Tools has the names of the offered tools.
	Tools []string
	// ToolResults counts the results in the whole session.
	ToolResults int
	// LastResult is the text of the last tool result, or of those of tools that were called at
	// the same time.
	LastResult string
	// LastUser is the text of the user's last message.
	LastUser string
	// Dir is the working directory that the prompt names; empty if it names none.
	Dir string
	// Body is the request as it was sent.
	Body []byte
}
