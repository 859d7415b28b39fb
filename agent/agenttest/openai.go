package agenttest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// responses is the Responses API of OpenAI.
var responses = protocol{
	parse: parseResponses, stream: streamResponse, whole: wholeResponse,
	errorBody: func(r Reply) object {
		return object{"error": object{"type": r.ErrorType, "code": r.ErrorType, "message": r.Text}}
	},
}

// workspaceRoot finds the directory that Codex names in its prompt.
var workspaceRoot = pattern.New(`<cwd>(.+)</cwd>`)

// parseResponses reads a request. System is the instructions and all developer
// messages.
func parseResponses(body []byte, h *http.Request) (Request, error) {
	var in struct {
		Model        string `json:"model"`
		Stream       bool   `json:"stream"`
		Instructions string `json:"instructions"`
		Input        []struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Output  json.RawMessage `json:"output"`
		} `json:"input"`
		Tools []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("the request is no JSON: %w", err)
	}
	r := Request{Header: h.Header, Model: in.Model, Stream: in.Stream, System: in.Instructions, Body: body}
	for _, t := range in.Tools {
		name := t.Name
		if name == "" {
			name = t.Type
		}
		r.Tools = append(r.Tools, name)
	}
	for _, item := range in.Input {
		text := inputText(item.Content)
		switch {
		case item.Role == "developer" || item.Role == "system":
			r.System += "\n" + text
		// Codex describes its environment in a message of the user.
		case item.Role == "user":
			r.LastUser = text
			if m := workspaceRoot.FindStringSubmatch(text); m != nil {
				r.Dir = m[1]
			}
		case strings.HasSuffix(item.Type, "_call_output"):
			r.ToolResults++
			r.LastResult = inputText(item.Output)
		}
	}
	return r, nil
}

// inputText returns the text of content that is either a string or a list of parts.
func inputText(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts)
	var out []string
	for _, p := range parts {
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n")
}

// responseItems returns the reply as output items.
func responseItems(r Reply) []object {
	var out []object
	if r.Text != "" || r.Tool == "" {
		out = append(out, object{
			"type": "message", "role": "assistant", "id": "msg_" + rand.Text(), "status": "completed",
			"content": []object{{"type": "output_text", "text": r.Text, "annotations": []object{}}},
		})
	}
	if r.Tool != "" {
		out = append(out, object{
			"type": "function_call", "id": "fc_" + rand.Text(), "call_id": "call_" + rand.Text(), "status": "completed",
			"name": r.Tool, "arguments": string(encode(r.Input)),
		})
	}
	return out
}

// response returns the response object. Its input tokens include the cached ones.
func response(req Request, r Reply, id, status string) object {
	u := r.usage()
	in := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"id": id, "object": "response", "model": req.Model, "status": status, "output": responseItems(r),
		"usage": object{
			"input_tokens": in, "output_tokens": u.Output, "total_tokens": in + u.Output,
			"input_tokens_details":  object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
			"output_tokens_details": object{"reasoning_tokens": 0},
		},
	}
}

// wholeResponse returns a complete response.
func wholeResponse(req Request, r Reply) object {
	return response(req, r, "resp_"+rand.Text(), "completed")
}

// streamResponse returns the events of a response. Only the last one has the usage.
func streamResponse(req Request, r Reply) []Chunk {
	var out []Chunk
	done := wholeResponse(req, r)
	event := func(kind string, data object, served Usage) {
		data["type"] = kind
		out = append(out, Chunk{Event: kind, Data: data, Served: served})
	}
	event("response.created", object{"response": object{"id": done["id"], "status": "in_progress"}}, Usage{})
	for i, item := range done["output"].([]object) { //nolint:forcetypeassert // just made
		event("response.output_item.added", object{"output_index": i, "item": item}, Usage{})
		event("response.output_item.done", object{"output_index": i, "item": item}, Usage{})
	}
	event("response.completed", object{"response": done}, r.usage())
	return out
}
