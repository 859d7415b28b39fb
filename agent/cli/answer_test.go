package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/cli"
)

func TestObject(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": 1}`: `{"a":1}`,
		"Here it is:\n```json\n{\"a\": 1}\n```\n":                    `{"a":1}`,
		`first {"a": 1}, then {"b": {"c": "}"}} and that is it`:      `{"b":{"c":"}"}}`,
		`if (x) { y } {"a": "<&>"}`:                                  `{"a":"<&>"}`,
		`{"a": null, "b": [{"c": null, "d": 12345678901234567890}]}`: `{"b":[{"d":12345678901234567890}]}`,
		`[1, 2]`:                     "",
		"no":                         "",
		`{"a": 1`:                    "",
		`{"a": {}}{`:                 `{"a":{}}`,
		strings.Repeat("{", 100_000): "",
	} {
		if got := string(cli.LastObject(in)); got != want {
			t.Errorf("%.80q: got %s, want %s", in, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{`{"requirements": [], "verdict": "approved", "issues": []}`, ""},
		{`{"requirements": [], "verdict": "maybe", "issues": []}`, "verdict is maybe; must be one of [approved rejected]"},
		{`{"requirements": [], "issues": [1]}`, `it lacks "verdict"; issues[0] must be of type string`},
		{`{"verdict": "approved", "issues": [], "requirements": [], "mood": "good"}`, `it has "mood", which the schema does not know`},
		{`{"verdict": "approved", "issues": [], "requirements": [], "observations": [{"evidence": []}]}`, `observations[0] lacks "content"`},
		{`[]`, "it must be of type object"},
		{`x`, "invalid character"},
	} {
		err := cli.ValidateSchema(agent.ReviewSchema, []byte(tt.answer))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.answer, err, tt.want)
		}
	}
	numbers := `{"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": ["number", "null"]}, "b": {"type": "boolean"},
		"s": {"type": "string", "minLength": 2}, "l": {"type": "array", "minItems": 1}}}`
	for answer, want := range map[string]string{
		`{"n": 3, "x": 1.5, "b": true, "s": "ab", "l": [1]}`: "",
		`{"x": null}`: "", `{"n": 3.5}`: "n must be of type integer", `{"x": "1"}`: "x must be of type number or null",
		`{"s": "ü"}`: "s is shorter than 2 characters", `{"l": []}`: "l has fewer than 1 elements",
	} {
		if err := cli.ValidateSchema([]byte(numbers), []byte(answer)); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: got %v, want %s", answer, err, want)
		}
	}
}

// FuzzObject looks for text of which something else is taken than an object.
func FuzzObject(f *testing.F) {
	f.Add("a {\"b\": null} {c} \"{\"")
	f.Fuzz(func(t *testing.T, text string) {
		got := cli.LastObject(text)
		if got == nil {
			return
		}
		var o map[string]json.RawMessage // a number may be one that no type of Go holds
		if err := json.Unmarshal(got, &o); err != nil {
			t.Errorf("%q: %s: %v", text, got, err)
		}
		_ = cli.ValidateSchema(agent.AnalysisSchema, got)
	})
}
