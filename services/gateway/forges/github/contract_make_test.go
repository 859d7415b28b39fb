package github_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// description is GitHub's, of OpenAPI 3.0, as the npm package @octokit/openapi
// has it (generated/api.github.com.json).
type description struct {
	Info       struct{ Version string }
	Paths      map[string]map[string]any
	Components map[string]map[string]any
}

// makeContract writes the contract anew, from a description: PFL_FORGE_GITHUB_OPENAPI names its
// file. What the description does not have is not in it, so that TestContract fails for it.
func makeContract(t *testing.T, path string, list []forgetest.Exchange) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	all := contract{Operations: map[string]operation{}}
	for p, methods := range d.Paths {
		for m := range methods {
			all.Operations[strings.ToUpper(m)+" "+p] = operation{}
		}
	}
	out := contract{
		Source:     "a part of @octokit/openapi " + d.Info.Version + ", licensed under MIT, in words of JSON Schema",
		Operations: map[string]operation{}, Schemas: map[string]any{},
	}
	samples := map[string][]any{}
	for _, e := range list {
		name, ok := all.find(e.Method, e.Path)
		if !ok || e.Status >= http.StatusMultipleChoices {
			continue
		}
		m, p, _ := strings.Cut(name, " ")
		op, _ := d.Paths[p][strings.ToLower(m)].(map[string]any)
		out.Operations[name] = d.operation(op)
		for key, text := range map[string][]byte{name + " in": e.In, fmt.Sprint(name, " ", e.Status): e.Out} {
			var v any
			if len(text) == 0 || json.Unmarshal(text, &v) != nil {
				continue
			}
			samples[key] = append(samples[key], v)
			of := d.resolve(op["requestBody"])
			if key != name+" in" {
				responses, _ := op["responses"].(map[string]any)
				of = d.resolve(responses[strconv.Itoa(e.Status)])
			}
			content, _ := of["content"].(map[string]any)
			media, _ := content["application/json"].(map[string]any)
			out.Schemas[key] = d.prune(media["schema"], samples[key])
		}
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(contractFile, append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

// operation returns the query and the statuses of success of an operation.
func (d *description) operation(op map[string]any) operation {
	out := operation{Query: map[string][]any{}}
	list, _ := op["parameters"].([]any)
	for _, p := range list {
		if p := d.resolve(p); p["in"] == "query" {
			name, _ := p["name"].(string)
			out.Query[name], _ = d.resolve(p["schema"])["enum"].([]any)
		}
	}
	responses, _ := op["responses"].(map[string]any)
	for status := range responses {
		if strings.HasPrefix(status, "2") {
			out.Statuses = append(out.Statuses, status)
		}
	}
	slices.Sort(out.Statuses)
	return out
}

// resolve returns an object of the description, or the one that it refers to.
func (d *description) resolve(v any) map[string]any {
	o, _ := v.(map[string]any)
	ref, ok := o["$ref"].(string)
	if !ok {
		return o
	}
	parts := strings.Split(strings.TrimPrefix(ref, "#/components/"), "/")
	return d.resolve(d.Components[parts[0]][parts[1]])
}

// choices returns the schemas of which a value has to fit one.
func (d *description) choices(s map[string]any) []map[string]any {
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[word].([]any); ok {
			var out []map[string]any
			for _, c := range list {
				out = append(out, d.choices(d.resolve(c))...)
			}
			if len(out) == 0 {
				continue
			}
			return out
		}
	}
	return []map[string]any{s}
}

// fits returns how well a schema is that of a value: it has its type, knows its fields,
// none has another word than it allows, and few that it has to have are missing.
func (d *description) fits(s map[string]any, v any) int {
	score := 0
	switch v := v.(type) {
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, f := range v {
			enum, _ := d.resolve(properties[name])["enum"].([]any)
			switch {
			case enum != nil && !slices.Contains(enum, f):
				score -= 100
			case properties[name] != nil:
				score += 10
			}
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[fmt.Sprint(name)]; !ok {
				score--
			}
		}
	case []any:
		if s["type"] == "array" {
			score++
		}
	case string:
		if s["type"] == "string" {
			score++
		}
	}
	return score
}

// prune returns a schema with those fields alone that the samples have, and
// with all that a request has to have.
func (d *description) prune(of any, samples []any) any {
	s := d.resolve(of)
	nullable := s["nullable"] == true
	choices := d.choices(s)
	by := make([][]any, len(choices))
	for _, v := range samples {
		best := 0
		for i, c := range choices {
			nullable = nullable || c["nullable"] == true || c["type"] == "null"
			if d.fits(c, v) > d.fits(choices[best], v) {
				best = i
			}
		}
		by[best] = append(by[best], v)
	}
	var list []any
	for i, c := range choices {
		if len(by[i]) > 0 || len(choices) == 1 {
			list = append(list, d.pruneOne(c, nullable, by[i]))
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return map[string]any{"anyOf": list}
}

// pruneOne is prune for a schema that has no choices.
func (d *description) pruneOne(best map[string]any, nullable bool, samples []any) any {
	out := map[string]any{}
	if kind, ok := best["type"].(string); ok {
		out["type"] = kind
		if nullable {
			out["type"] = []string{kind, "null"}
		}
	}
	if enum, ok := best["enum"].([]any); ok {
		if nullable {
			enum = append(slices.Clone(enum), nil)
		}
		out["enum"] = enum
	}
	if items := best["items"]; items != nil {
		var inner []any
		for _, v := range samples {
			list, _ := v.([]any)
			inner = append(inner, list...)
		}
		out["items"] = d.prune(items, inner)
	}
	properties, _ := best["properties"].(map[string]any)
	if properties == nil {
		return out
	}
	out["type"] = map[bool]any{true: []string{"object", "null"}, false: "object"}[nullable]
	fields, kept := map[string]any{}, []any{}
	for name, p := range properties {
		var inner []any
		for _, v := range samples {
			if o, ok := v.(map[string]any); ok {
				if f, there := o[name]; there {
					inner = append(inner, f)
				}
			}
		}
		if len(inner) > 0 {
			fields[name] = d.prune(p, inner)
		}
	}
	required, _ := best["required"].([]any)
	for _, name := range required {
		if fields[fmt.Sprint(name)] != nil {
			kept = append(kept, name)
		}
	}
	out["properties"], out["required"], out["additionalProperties"] = fields, kept, false
	return out
}
