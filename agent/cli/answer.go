package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// extractAnswer sets out.Answer to the last JSON object in the agent's final message.
// It returns a *agent.Failure if there is none, or it does not fit the schema.
func extractAnswer(out *agent.Outcome, call *agent.Call) error {
	if len(call.Schema) == 0 {
		return nil
	}
	found := LastObject(out.Text)
	if found == nil {
		return agent.Fail(forge.FailInvalidOutput, "the agent gave no JSON object; it said: %s", term.Short(out.Text, maxText))
	}
	if err := ValidateSchema(call.Schema, found); err != nil {
		return agent.Fail(forge.FailInvalidOutput, "the agent's answer does not match the schema: %v", err)
	}
	out.Answer = found
	return nil
}

// Bounds of the search in LastObject: bytes from the end, and objects.
const (
	maxAnswer  = 1 << 20
	maxObjects = 1000
)

// LastObject returns the last JSON object in a text, without members that are null; nil
// if there is none. Agents write prose and code fences around an answer, and null for
// optional members.
func LastObject(text string) []byte {
	if len(text) > maxAnswer {
		text = text[len(text)-maxAnswer:]
	}
	var found map[string]any
	for range maxObjects {
		start := strings.IndexByte(text, '{')
		if start < 0 {
			break
		}
		text = text[start:]
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var o map[string]any
		if d.Decode(&o) != nil {
			text = text[1:]
			continue
		}
		found, text = o, text[d.InputOffset():]
	}
	if found == nil {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(withoutNull(found)); err != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// withoutNull removes null members from objects, at any depth. It changes v.
func withoutNull(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			if e == nil {
				delete(x, k)
				continue
			}
			x[k] = withoutNull(e)
		}
	case []any:
		for i := range x {
			x[i] = withoutNull(x[i])
		}
	}
	return v
}
