package codex

import (
	"encoding/json"
	"maps"
	"slices"
)

// strict returns the schema in the form that the API accepts: every member is required,
// and an optional one may be null. Package cli removes the nulls from the answer.
func strict(schema []byte) ([]byte, error) {
	var s map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, err
	}
	makeStrict(s)
	return json.Marshal(s)
}

// makeStrict changes a schema and those within it.
func makeStrict(s map[string]any) {
	// The API refuses these keywords; the answer is still checked against the whole
	// schema.
	for _, k := range []string{"minLength", "maxLength", "$schema"} {
		delete(s, k)
	}
	if items, ok := s["items"].(map[string]any); ok {
		makeStrict(items)
	}
	props, ok := s["properties"].(map[string]any)
	if !ok {
		return
	}
	var required []any
	if r, ok := s["required"].([]any); ok {
		required = r
	}
	var all []any
	for _, name := range slices.Sorted(maps.Keys(props)) {
		all = append(all, name)
		p, ok := props[name].(map[string]any)
		if !ok {
			continue
		}
		makeStrict(p)
		if !slices.Contains(required, any(name)) {
			nullable(p)
		}
	}
	s["required"], s["additionalProperties"] = all, false
}

// nullable allows null beside a schema's type and values.
func nullable(p map[string]any) {
	if t, ok := p["type"].(string); ok {
		p["type"] = []any{t, "null"}
	}
	if e, ok := p["enum"].([]any); ok {
		p["enum"] = append(e, nil)
	}
}
