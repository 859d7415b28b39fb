package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
)

// gemini is the API of Gemini, with the model and the method in the path.
var gemini = protocol{
	parse: parseGemini, stream: streamGemini, whole: wholeGemini,
	errorBody: func(r Reply) object {
		return object{"error": object{"code": r.Status, "status": r.ErrorType, "message": r.Text}}
	},
}

// geminiPart is a text, or the result of a tool.
type geminiPart struct {
	Text             string `json:"text"`
	FunctionResponse *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

// parseGemini reads a request. Dir stays empty.
func parseGemini(body []byte, h *http.Request) (Request, error) {
	var in struct {
		System struct {
			Parts []geminiPart `json:"parts"`
		} `json:"systemInstruction"`
		Contents []struct {
			Role  string       `json:"role"`
			Parts []geminiPart `json:"parts"`
		} `json:"contents"`
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("the request is no JSON: %w", err)
	}
	// The path ends in <model>:<method>.
	model, method, _ := strings.Cut(path.Base(h.URL.Path), ":")
	r := Request{Header: h.Header, Model: model, Stream: method == "streamGenerateContent", Body: body}
	r.System, _ = geminiText(in.System.Parts)
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	for _, c := range in.Contents {
		text, results := geminiText(c.Parts)
		if c.Role == "user" && text != "" {
			r.LastUser = text
		}
		if r.ToolResults += len(results); len(results) > 0 {
			r.LastResult = results[len(results)-1]
		}
	}
	return r, nil
}

// geminiText returns the texts of parts, and the results of tools in them.
func geminiText(parts []geminiPart) (text string, results []string) {
	var said []string
	for _, p := range parts {
		if p.FunctionResponse != nil {
			results = append(results, string(p.FunctionResponse.Response))
		} else if p.Text != "" {
			said = append(said, p.Text)
		}
	}
	return strings.Join(said, "\n"), results
}

// wholeGemini returns a response. Its input tokens include the cached ones.
func wholeGemini(req Request, r Reply) object {
	var parts []object
	if r.Text != "" || r.Tool == "" {
		parts = append(parts, object{"text": r.Text})
	}
	if r.Tool != "" {
		parts = append(parts, object{"functionCall": object{"name": r.Tool, "args": r.Input}})
	}
	u := r.usage()
	// This API counts cached tokens as part of the prompt.
	in := u.Input + u.CacheRead + u.CacheWrite
	return object{
		"candidates": []object{{
			"content": object{"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0,
		}},
		"usageMetadata": object{
			"promptTokenCount": in, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output,
			"totalTokenCount": in + u.Output,
		},
		"modelVersion": req.Model,
	}
}

// streamGemini returns two chunks. The first has no content, so that there is a place
// to cut the stream.
func streamGemini(req Request, r Reply) []Chunk {
	begun := object{"candidates": []object{}, "modelVersion": req.Model}
	return []Chunk{{Data: begun}, {Data: wholeGemini(req, r), Served: r.usage()}}
}
