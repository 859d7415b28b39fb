package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// schema is the subset of JSON Schema that the answers' schemas use. Other keywords are
// ignored.
type schema struct {
	// Type is a name or a list of names.
	Type       any                `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Additional *bool              `json:"additionalProperties"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	MinLength  int                `json:"minLength"`
	MinItems   int                `json:"minItems"`
}

// ValidateSchema returns an error that lists up to ten violations of a schema by a JSON
// value. Its message is shown to the agent that has to correct the answer.
func ValidateSchema(schemaJSON, value []byte) error {
	var s schema
	if err := json.Unmarshal(schemaJSON, &s); err != nil {
		return fmt.Errorf("the schema cannot be read: %w", err)
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	var wrong []string
	s.check("", v, &wrong)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(wrong[:min(len(wrong), 10)], "; "))
}

// check appends the violations by v to wrong. at is the path of v, empty for the whole.
func (s *schema) check(at string, v any, wrong *[]string) {
	fail := func(format string, args ...any) {
		name := at
		if name == "" {
			name = "it"
		}
		*wrong = append(*wrong, name+" "+fmt.Sprintf(format, args...))
	}
	if types := s.types(); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isType(t, v) }) {
		fail("must be of type %s", strings.Join(types, " or "))
		return
	}
	if len(s.Enum) > 0 && !slices.ContainsFunc(s.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		fail("is %v; must be one of %v", v, s.Enum)
	}
	switch x := v.(type) {
	case string:
		if utf8.RuneCountInString(x) < s.MinLength {
			fail("is shorter than %d characters", s.MinLength)
		}
	case []any:
		if len(x) < s.MinItems {
			fail("has fewer than %d elements", s.MinItems)
		}
		for i, e := range x {
			if s.Items != nil {
				s.Items.check(fmt.Sprintf("%s[%d]", at, i), e, wrong)
			}
		}
	case map[string]any:
		s.members(at, x, fail, wrong)
	}
}

// members checks the members of an object.
func (s *schema) members(at string, x map[string]any, fail func(string, ...any), wrong *[]string) {
	for _, name := range s.Required {
		if _, ok := x[name]; !ok {
			fail("lacks %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x)) {
		p, known := s.Properties[name]
		switch {
		case known && p != nil:
			p.check(strings.TrimPrefix(at+"."+name, "."), x[name], wrong)
		case !known && s.Additional != nil && !*s.Additional:
			fail("has %q, which the schema does not know", name)
		}
	}
}

// types returns the allowed types; none if the schema has no type.
func (s *schema) types() []string {
	switch t := s.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var out []string
		for _, e := range t {
			out = append(out, fmt.Sprint(e))
		}
		return out
	}
	return nil
}

// isType reports whether v, as decoded by encoding/json, is of a JSON Schema type.
func isType(name string, v any) bool {
	switch x := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && x == float64(int64(x))
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}
