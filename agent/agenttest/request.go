package agenttest

import "net/http"

// Request is what the CLI asked the model.
type Request struct {
	N           int // of the scenario's requests, from 0
	Header      http.Header
	Model       string
	Stream      bool
	System      string   // all blocks
	Tools       []string // names
	ToolResults int      // in the whole conversation
	LastResult  string   // text of the last tool result
	LastUser    string   // text of the last message of the user
	Dir         string   // the working directory that the prompt names
	Body        []byte
}
