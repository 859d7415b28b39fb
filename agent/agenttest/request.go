package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Request is what the CLI asked the model.
type Request struct {
	Header      http.Header
	Model       string
	Stream      bool
	System      string   // all blocks
	Tools       []string // names
	ToolResults int      // in the whole conversation
	LastResult  string   // text of the last tool result
	LastUser    string   // text of the last message of the user
	Dir         string   // the working directory that the system prompt names
	Body        []byte
}

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

func (b blocks) text() string {
	var out []string
	for _, x := range b {
		if x.Type == "text" {
			out = append(out, x.Text)
		}
	}
	return strings.Join(out, "\n")
}

var workingDir = regexp.MustCompile(`(?m)[Ww]orking directory: (.+)$`)

func parseRequest(body []byte, header http.Header) (Request, error) {
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
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("the request is no JSON: %w", err)
	}
	r := Request{Header: header, Model: in.Model, Stream: in.Stream, System: in.System.text(), Body: body}
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	all := []string{r.System}
	for _, m := range in.Messages {
		all = append(all, m.Content.text())
		if m.Role != "user" {
			continue
		}
		if text := m.Content.text(); text != "" {
			r.LastUser = text
		}
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				r.ToolResults++
				r.LastResult = resultText(b.Content)
			}
		}
	}
	if m := workingDir.FindStringSubmatch(strings.Join(all, "\n")); m != nil {
		r.Dir = strings.TrimSpace(m[1])
	}
	return r, nil
}

func resultText(content json.RawMessage) string {
	var b blocks
	if json.Unmarshal(content, &b) != nil {
		return string(content)
	}
	return b.text()
}
