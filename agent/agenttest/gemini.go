package agenttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
)

type geminiPart struct {
	Text             string `json:"text"`
	FunctionResponse *struct {
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
}

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

func wholeGemini(req Request, r Reply) object {
	var parts []object
	if r.Text != "" || r.Tool == "" {
		parts = append(parts, object{"text": r.Text})
	}
	if r.Tool != "" {
		parts = append(parts, object{"functionCall": object{"name": r.Tool, "args": r.Input}})
	}
	u := r.usage()
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

func streamGemini(w http.ResponseWriter, req Request, r Reply) {
	if r.Cut {
		fmt.Fprint(w, "data: {\"candidates\": [{\"content\"")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	send(w, "", wholeGemini(req, r))
}
