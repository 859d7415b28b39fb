package outside

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/internal/plainjson"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

var rewrite = flag.Bool("rewrite", false, "write docs/openapi.json anew")

// doc is a JSON object.
type doc = map[string]any

// description is where the description of the API is.
const description = "../../../../docs/openapi.json"

// TestOpenAPI makes docs/openapi.json of the table of routes and of the types
// that are answered, and compares. With -rewrite it writes the file.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	want, err := json.MarshalIndent(openAPI(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *rewrite {
		if err := os.WriteFile(description, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(description)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/openapi.json is not what the code does: go test ./cmd/pfl-forge/internal/outside -run OpenAPI -rewrite, and look at the difference")
	}
}

// problems are the statuses that a request of any kind may be answered with.
// What has content, or a name, may have more.
var problems = []int{
	http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable,
}

// ofContent are those of requests with content.
var ofContent = []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}

// answered returns the name of the schema of what a verb is answered with.
func answered(v tokens.Verb) string {
	names := map[tokens.Verb]string{
		tokens.List: "listed", tokens.Show: "detail", tokens.Diff: "diff", tokens.Transcript: "transcript",
		tokens.Timeline: "timeline", tokens.Audit: "audit", tokens.Costs: "costs", tokens.Settings: "settings",
		tokens.Queue: "queue", tokens.Health: "health", tokens.Submit: "accepted", tokens.Overview: "overview", tokens.Whole: "whole",
	}
	if name := names[v]; name != "" {
		return name
	}
	return "decided"
}

// openAPI describes the API.
func openAPI() doc {
	schemas := doc{
		"listed": schemaOf(reflect.TypeFor[document.Listed]()), "detail": schemaOf(reflect.TypeFor[document.Detail]()),
		"diff": schemaOf(reflect.TypeFor[document.Diff]()), "timeline": schemaOf(reflect.TypeFor[document.Timeline]()),
		"audit":      schemaOf(reflect.TypeFor[document.Audit]()),
		"costs":      schemaOf(reflect.TypeFor[document.Costs]()),
		"settings":   schemaOf(reflect.TypeFor[setup.InForce]()),
		"health":     schemaOf(reflect.TypeFor[figures.Health]()),
		"queue":      schemaOf(reflect.TypeFor[document.Queue]()),
		"transcript": schemaOf(reflect.TypeFor[document.Transcript]()),
		"overview":   schemaOf(reflect.TypeFor[whole.List]()),
		"whole":      schemaOf(reflect.TypeFor[whole.Intent]()),
		"problem":    schemaOf(reflect.TypeFor[api.Problem]()), "change": schemaOf(reflect.TypeFor[changes.CloudEvent[document.Change]]()),
		"accepted": result("new", "known", "accepted"), "decided": result("applied", "known", "accepted"), "intent": intentSchema(),
		"event": eventSchema(),
	}
	for _, verb := range requests.Acts() {
		schemas[verb] = wishSchema(verb)
	}
	paths := doc{}
	for _, r := range api.Routes() {
		at, _ := paths[r.Path].(doc)
		if at == nil {
			at = doc{"parameters": pathParameters(r.Path)}
			paths[r.Path] = at
		}
		at[strings.ToLower(r.Method)] = operation(r)
	}
	return doc{
		"openapi": "3.1.0", "info": doc{"title": "pfl-forge", "version": "1.0.0", "description": "Ask for changes, look, decide and follow. See guide-api.md."},
		"paths": paths, "security": []doc{{"token": []string{}}, {"login": []string{}}},
		"components": doc{"schemas": schemas, "securitySchemes": doc{
			"token": doc{"type": "http", "scheme": "bearer", "description": "A token of the operator's file, or one of the issuer of login."},
			"login": doc{
				"type": "openIdConnect", "openIdConnectUrl": "https://login.example.com/.well-known/openid-configuration",
				"description": "An ID token of the issuer that the operator has named, for the client id of the API; sent as a bearer token.",
			},
		}},
	}
}

// pathParameters are those that a path names.
func pathParameters(path string) (list []doc) {
	for _, p := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		list = append(list, doc{"name": p[1], "in": "path", "required": true, "schema": doc{"type": "string"}})
	}
	return list
}

// operation describes a route.
func operation(r api.Route) doc {
	ref := func(name string) doc { return doc{"$ref": "#/components/schemas/" + name} }
	op := doc{"operationId": string(r.Verb), "summary": r.About}
	var parameters []doc
	for _, q := range r.Queries {
		schema := doc{"type": "string"}
		if q.Many {
			schema = doc{"type": "array", "items": schema}
		}
		parameters = append(parameters, doc{"name": q.Name, "in": "query", "description": q.About, "schema": schema})
	}
	responses, statuses := doc{}, slices.Clone(problems)
	for _, status := range r.Statuses {
		content := doc{"application/json": doc{"schema": ref(answered(r.Verb))}}
		if r.Verb == tokens.Follow {
			content = doc{"text/event-stream": doc{"schema": doc{"type": "string"}}}
		}
		responses[strconv.Itoa(status)] = doc{"description": http.StatusText(status), "content": content}
	}
	if r.Verb == tokens.Diff || r.Verb == tokens.Transcript || r.Verb == tokens.Overview || r.Verb == tokens.Whole {
		statuses = append(statuses, http.StatusConflict)
	}
	if r.Verb == tokens.Follow {
		parameters = append(parameters, doc{"name": "Last-Event-ID", "in": "header", "schema": doc{"type": "string"}})
	}
	if r.Method == http.MethodPost {
		name := string(r.Verb)
		if r.Verb == tokens.Submit {
			name = "intent"
		}
		content := doc{}
		for _, kind := range r.Types() {
			schema := ref(name)
			if kind == "application/cloudevents+json" {
				schema = ref("event")
			}
			content[kind] = doc{"schema": schema}
		}
		op["requestBody"] = doc{"content": content}
		parameters = append(parameters, doc{"name": "Idempotency-Key", "in": "header", "schema": doc{"type": "string", "maxLength": 200}})
		statuses = append(statuses, ofContent...)
	}
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = doc{
			"description": http.StatusText(status), "content": doc{"application/problem+json": doc{"schema": ref("problem")}},
		}
	}
	op["responses"] = responses
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	return op
}

// result is the schema of a decision.
func result(words ...string) doc {
	s := schemaOf(reflect.TypeFor[requests.Accepted]())
	s["properties"].(doc)["result"] = doc{"type": "string", "enum": words}
	return s
}

// intentSchema is the schema of what is submitted.
func intentSchema() doc {
	properties := doc{"id": doc{"type": "string"}}
	for _, f := range document.FieldsBy(document.Systems) {
		properties[f.Name] = schemaOf(reflect.TypeOf(f.Of(&forge.Intent{})))
	}
	properties["criteria"] = doc{"type": "array", "items": doc{"anyOf": []doc{{"type": "string"}, {"type": "object", "required": []string{"check"}}}}}
	return doc{"type": "object", "additionalProperties": false, "required": []string{"title", "body"}, "properties": properties}
}

// eventSchema is the schema of a CloudEvent that asks for a change.
func eventSchema() doc {
	data := intentSchema()
	properties := data["properties"].(doc)
	delete(properties, "id")
	properties["project"], properties["actor"] = doc{"type": "string"}, doc{"type": "string"}
	text := doc{"type": "string", "minLength": 1}
	return doc{"type": "object", "required": []string{"specversion", "type", "source", "id", "data"}, "properties": doc{
		"specversion": doc{"type": "string", "const": "1.0"}, "type": doc{"type": "string", "const": submitType}, "source": text, "id": text,
		"time": doc{"type": "string", "format": "date-time"}, "datacontenttype": doc{"type": "string", "const": "application/json"}, "data": data,
	}}
}

// Every field that somebody may give of a wish, with a value that is taken.
var wishFields = map[string]string{
	"title": `"t"`, "body": `"b"`, "type": `"fix"`, "risk": `"low"`, "plan": `"d6b94d4dcc51"`, "reason": `"r"`, "index": `0`, "question": `"q"`, "answer": `"a"`,
	"instructions": `"i"`, "adopt": `"3f786850e387"`, "budget_usd": `1.5`, "task": `"a-001"`, "hash": `"d6b94d4dcc51"`, "words": `"w"`,
}

// wishSchema is the schema of a wish: the fields that are known there, of which
// those are required without which it is refused.
func wishSchema(verb string) doc {
	properties, required := doc{}, []string{}
	known := func(field string) bool {
		_, err := requests.ReadAct(verb, []byte(`{"`+field+`": `+wishFields[field]+`}`))
		return err == nil || !strings.Contains(fields(err), field+" is not known")
	}
	missing := ""
	if _, err := requests.ReadAct(verb, nil); err != nil {
		missing = fields(err)
	}
	for field, value := range wishFields {
		if !known(field) {
			continue
		}
		kind := "string"
		if value[0] != '"' {
			kind = map[bool]string{true: "number", false: "integer"}[strings.Contains(value, ".")]
		}
		properties[field] = doc{"type": kind}
		if strings.Contains(missing, field+" ") {
			required = append(required, field)
		}
	}
	slices.Sort(required)
	return doc{"type": "object", "additionalProperties": false, "required": required, "properties": properties}
}

// fields are the mistakes of an error, each on a line.
func fields(err error) (text string) {
	var e *requests.RequestError
	if !asRequest(err, &e) {
		return err.Error()
	}
	for _, f := range e.Fields {
		text += f.Field + " " + f.Reason + "\n"
	}
	return text
}

// words has the values of types that have few.
var words = map[reflect.Type][]string{
	reflect.TypeFor[forge.Risk](): {"low", "med", "high"}, reflect.TypeFor[forge.Status](): document.Statuses, reflect.TypeFor[forge.Waiting](): document.Waits,
}

// schemaOf is the schema of a type that is written, or read.
func schemaOf(typ reflect.Type) doc {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return doc{"type": "string", "format": "date-time"}
	case words[typ] != nil:
		return doc{"type": "string", "enum": words[typ]}
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return schemaOf(typ.Elem())
	case reflect.Slice:
		return doc{"type": "array", "items": schemaOf(typ.Elem())}
	case reflect.Map:
		return doc{"type": "object", "additionalProperties": schemaOf(typ.Elem())}
	case reflect.Bool:
		return doc{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return doc{"type": "integer"}
	case reflect.Float64:
		return doc{"type": "number"}
	case reflect.Struct:
		properties, required := doc{}, []string{}
		addFields(typ, properties, &required)
		return doc{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
	default:
		return doc{"type": "string"}
	}
}

// addFields adds the fields of a struct as they are in JSON, with those of embedded ones.
func addFields(typ reflect.Type, properties doc, required *[]string) {
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			addFields(f.Type, properties, required)
		case f.IsExported() && !plainjson.Tagged(typ):
			properties[plainjson.Name(f.Name)] = schemaOf(f.Type) // what is zero is left out
		case f.IsExported() && name != "-":
			properties[name] = schemaOf(f.Type)
			if options == "" {
				*required = append(*required, name)
			}
		}
	}
}
