package codex

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/agent"
)

// TestStrict has every schema in the form without which the API refuses it.
func TestStrict(t *testing.T) {
	got, err := strict([]byte(`{"type": "object", "properties": {"a": {"type": "string", "minLength": 1}, "b": {"type": "array",
		"items": {"type": "object", "properties": {"c": {"type": "string", "enum": ["x"]}}}}}, "required": ["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"additionalProperties":false,"properties":{"a":{"type":"string"},"b":{"items":{"additionalProperties":false,` +
		`"properties":{"c":{"enum":["x",null],"type":["string","null"]}},"required":["c"],"type":"object"},"type":["array","null"]}},` +
		`"required":["a","b"],"type":"object"}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	for _, role := range agent.Roles() {
		spec := agent.Spec(role)
		if spec.Schema == nil {
			continue
		}
		data, err := strict(spec.Schema)
		if err != nil {
			t.Fatal(err)
		}
		var s map[string]any
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		mustBeStrict(t, string(role), s)
	}
}

func mustBeStrict(t *testing.T, at string, s map[string]any) {
	t.Helper()
	for key, v := range s {
		switch key {
		case "type", "enum", "description", "items", "properties", "required", "additionalProperties":
		default:
			t.Errorf("%s has %s: %v", at, key, v)
		}
	}
	if items, ok := s["items"].(map[string]any); ok {
		mustBeStrict(t, at+"[]", items)
	}
	props, ok := s["properties"].(map[string]any)
	if !ok {
		return
	}
	if required, _ := s["required"].([]any); len(required) != len(props) || s["additionalProperties"] != false {
		t.Errorf("%s requires %v of %d, and has additionalProperties %v", at, required, len(props), s["additionalProperties"])
	}
	for name, p := range props {
		if p, ok := p.(map[string]any); ok {
			mustBeStrict(t, at+"."+name, p)
		}
	}
}
