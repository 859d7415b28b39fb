package requests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/submitted"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/packed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
	"github.com/pfl-forge/pfl-forge/document/figures"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/document/whole"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/messages"
)

var rewrite = flag.Bool("rewrite", false, "write docs/asyncapi.yaml anew")

type doc = map[string]any

// TestAsyncAPI makes docs/asyncapi.yaml of the code, and compares. With -rewrite it writes
// the file.
func TestAsyncAPI(t *testing.T) {
	const file = "../../docs/asyncapi.yaml"
	want, err := strictyaml.Encode(asyncAPI())
	if err != nil {
		t.Fatal(err)
	}
	want = append([]byte("# Made of the code: go test ./bus/requests -run AsyncAPI -rewrite\n"), want...)
	if *rewrite {
		if err := os.WriteFile(file, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/asyncapi.yaml is not what the code does: go test ./bus/requests -run AsyncAPI -rewrite, and look at the difference")
	}
}

// asyncAPI describes what other systems send and get.
func asyncAPI() doc {
	messages, schemas, answers := doc{}, map[string]doc{}, doc{}
	channels, operations := doc{}, doc{}
	ref := func(kind, name string) doc { return doc{"$ref": "#/components/" + kind + "/" + name} }
	channel := func(name, address, about string, list ...string) {
		params, refs := doc{}, doc{}
		for _, p := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(address, -1) {
			params[p[1]] = doc{"description": parameters[p[1]]}
		}
		for _, m := range list {
			refs[m] = ref("messages", m)
		}
		channels[name] = doc{"address": address, "description": about, "parameters": params, "messages": refs}
	}
	operation := func(name, action, at, reply string) {
		op := doc{"action": action, "channel": doc{"$ref": "#/channels/" + at}}
		if reply != "" {
			op["reply"] = doc{
				"address": doc{"location": "$message.header#/reply"},
				"channel": doc{"$ref": "#/channels/" + reply},
			}
		}
		operations[name] = op
	}
	message := func(name, contentType, schema string) {
		messages[name] = doc{"contentType": contentType, "payload": ref("schemas", schema)}
	}
	for name, v := range map[string]any{
		"accepted": Accepted{}, "refused": Refused{}, "listed": document.Listed{}, "detail": document.Detail{}, "change": document.Change{},
		"served": Services{},
	} {
		schemas[name] = schemaOf(reflect.TypeOf(v))
	}
	schemas["submission"] = submissionSchema("id", "origin")
	schemas["comments"] = doc{"type": "object", "additionalProperties": false, "required": []string{"comments"}, "properties": doc{
		"id": doc{"type": "string"}, "project": doc{"type": "string"}, "origin": schemas["submission"]["properties"].(doc)["origin"],
		"comments": schemaOf(reflect.TypeFor[asked.Comments]()),
	}}
	message("comments", wire.TypeJSON, "comments")
	data := submissionSchema("actor")
	schemas["submissionEvent"] = envelope(doc{"type": "string", "const": submitted.Type}, data, "source", "id", "type", "specversion", "data")
	message("submission", wire.TypeJSON, "submission")
	message("submissionEvent", wire.TypeCloudEvents, "submissionEvent")
	for _, name := range []string{"accepted", "refused", "listed", "detail", "served"} {
		message(name, wire.TypeJSON, name)
	}
	schemas["list"] = doc{"type": "object", "additionalProperties": false, "properties": doc{
		"status": listOf(doc{"type": "string"}), "waiting": listOf(doc{"type": "string"}),
		"type": listOf(doc{"type": "string"}), "labels": listOf(doc{"type": "string"}), "requester": doc{"type": "string"}, "priority": doc{"type": "integer"},
		"since": doc{"type": "string", "format": "date-time"}, "after": doc{"type": "string"},
		"limit": doc{"type": "integer", "minimum": 1, "maximum": mostListed, "default": listed},
	}}
	schemas["show"] = doc{"type": "object", "additionalProperties": false, "required": []string{"intent"}, "properties": doc{
		"intent": doc{"type": "string"}, "part": doc{"type": "string", "enum": document.Parts}, "after": doc{"type": "integer", "minimum": 0},
	}}
	message("list", wire.TypeJSON, "list")
	schemas["services"] = doc{"type": "object", "additionalProperties": false, "properties": doc{"brief": doc{"type": "boolean"}}}
	message("show", wire.TypeJSON, "show")
	message("services", wire.TypeJSON, "services")
	schemas["read"], schemas["readEnd"] = schemaOf(reflect.TypeFor[conn.Read]()), schemaOf(reflect.TypeFor[conn.ReadEnd]())
	message("read", wire.TypeJSON, "read")
	message("readEnd", wire.TypeJSON, "readEnd")

	channel("submit", "forge.intent.{project}.submit", "Ask for an intent, or tell of comments on one. Stored in "+streams.Intents+".",
		"submission", "submissionEvent", "comments")
	channel("submitFrom", "forge.intent.{project}.from.{system}.submit", "The same, for senders that may speak for themselves only.",
		"submission", "submissionEvent", "comments")
	channel("request", "forge.api.{project}.submit", "Ask for an intent, or tell of comments on one, and be answered at once.",
		"submission", "submissionEvent", "comments")
	channel("requestFrom", "forge.api.{project}.from.{system}.submit", "The same, for senders that may speak for themselves only.",
		"submission", "submissionEvent", "comments")
	asking := map[string]string{
		"list": "Ask for a project's intents.", "show": "Ask for everything that is known of an intent.",
		"services": "Ask which services run, and which of them serve the project.",
	}
	for verb, p := range pages {
		answer := strings.ToLower(p.answer.Name()[:1]) + p.answer.Name()[1:]
		if answer == verb {
			answer += "Page"
		}
		schemas[verb], schemas[answer] = schemaOf(p.request), schemaOf(p.answer)
		schemas[verb]["additionalProperties"] = false
		message(verb, wire.TypeJSON, verb)
		message(answer, wire.TypeJSON, answer)
		asking[verb], answers[answer] = p.about, ref("messages", answer)
	}
	for verb, about := range asking {
		channel(verb, "forge.api.{project}.by.{person}."+verb, about, verb)
		channel(verb+"From", "forge.api.{project}.from.{system}."+verb, about, verb)
		operation(verb, "receive", verb, "answer")
		operation(verb+"From", "receive", verb+"From", "answer")
	}
	channel("read", "forge.api.{project}.by.{person}.read",
		"Read what is stored of the project: each message as it is, then the end, which has no header Nats-Sequence.", "read")
	operation("read", "receive", "read", "answer")
	for _, name := range []string{"accepted", "refused", "listed", "detail", "served", "readEnd"} {
		answers[name] = ref("messages", name)
	}
	channels["answer"] = doc{"address": nil, "description": "The inbox of the request.", "messages": answers}
	for verb, act := range acts {
		name := "person-" + verb
		schemas[name] = doc{"type": "object", "required": []string{"id", "to", verb}, "properties": doc{
			"id": doc{"type": "string"}, "to": doc{"type": "object", "properties": doc{"intent": doc{"type": "string"}}}, verb: protoSchema(act),
		}}
		message(name, wire.TypeJSON, name)
		about, sent := "What a person asks for. Stored in "+streams.Intents+".", []string{name}
		if verb == "approve" {
			about, sent = about+" An answer that approves a change is sent here too, and takes the right to approve.", append(sent, "person-answer")
		}
		channel(name, "forge.intent.{project}.by.{person}."+verb, about, sent...)
		operation(name, "receive", name, "")
	}
	for _, name := range []string{"submit", "submitFrom"} {
		operation(name, "receive", name, "")
	}
	for _, name := range []string{"request", "requestFrom"} {
		operation(name, "receive", name, "answer")
	}
	schemas["refusal"] = envelope(doc{"type": "string", "const": refusalType}, schemaOf(reflect.TypeFor[Refusal]()), published...)
	message("refusal", wire.TypeCloudEvents, "refusal")
	channel("refusal", "forge.refusal.{project}.{system}", "Tells why a submission was refused. Stored in "+streams.Refusals+".", "refusal")
	operation("refusal", "send", "refusal", "")
	for _, what := range changes.Kinds() {
		name := "intent-" + string(what)
		schemas[name] = envelope(doc{"type": "string", "const": "io.pfl-forge.intent." + string(what) + ".v1"}, ref("schemas", "change"), published...)
		message(name, wire.TypeCloudEvents, name)
		channel(name, "forge.event.{project}.{intent}."+string(what), "Tells a change. Stored in "+streams.Events+".", name)
		operation(name, "send", name, "")
	}
	return doc{
		"asyncapi": "3.0.0",
		"info": doc{
			"title": "pfl-forge", "version": serviceVersion,
			"description": "Ask for changes of repositories, and follow what becomes of them. See guide-systems.md.",
		},
		"defaultContentType": wire.TypeJSON,
		"servers":            doc{"nats": doc{"host": "nats.example.com:4222", "protocol": "nats"}},
		"channels":           channels,
		"operations":         operations,
		"components":         doc{"messages": messages, "schemas": schemas},
	}
}

var parameters = map[string]string{
	"project": "The name that the operator gave to a repository.",
	"intent":  "The intent's id.",
	"person":  "The person who asks; what is not a letter, a digit or a hyphen is = and two hexadecimal digits.",
	"system":  "The system that sends it; what is not a letter, a digit or a hyphen is = and two hexadecimal digits.",
}

// pages are what is asked for by page, by the verb of the request.
var pages = map[string]struct {
	about           string
	request, answer reflect.Type
}{
	"diff":       {"Ask for the change of an attempt.", reflect.TypeFor[document.DiffRequest](), reflect.TypeFor[document.Diff]()},
	"transcript": {"Ask for what was done in an attempt.", reflect.TypeFor[document.TranscriptRequest](), reflect.TypeFor[document.Transcript]()},
	"timeline":   {"Ask for the records of an intent.", reflect.TypeFor[document.TimelineRequest](), reflect.TypeFor[document.Timeline]()},
	"audit":      {"Ask who did what.", reflect.TypeFor[document.AuditRequest](), reflect.TypeFor[document.Audit]()},
	"costs":      {"Ask what agents used.", reflect.TypeFor[document.CostsRequest](), reflect.TypeFor[document.Costs]()},
	"queue":      {"Ask for the merge queue.", reflect.TypeFor[document.QueueRequest](), reflect.TypeFor[document.Queue]()},
	"health":     {"Ask how the work went, by week.", reflect.TypeFor[figures.HealthRequest](), reflect.TypeFor[figures.Health]()},
	"whole":      {"Ask for an intent, or for the list of all, as a whole.", reflect.TypeFor[whole.Request](), reflect.TypeFor[packed.Packed]()},
	"settings":   {"Ask by which settings a project is worked on.", reflect.TypeFor[setup.Request](), reflect.TypeFor[setup.InForce]()},
}

// acts are the things that people do of an intent that exists.
var acts = map[string]reflect.Type{
	"edit": reflect.TypeFor[forge.Edit](), "approve": reflect.TypeFor[forge.Approve](), "reject": reflect.TypeFor[forge.Reject](),
	"answer": reflect.TypeFor[forge.Answer](), "retry": reflect.TypeFor[forge.Retry](), "cancel": reflect.TypeFor[forge.Cancel](),
	"pause": reflect.TypeFor[forge.Pause](), "resume": reflect.TypeFor[forge.Resume](), "reflect": reflect.TypeFor[forge.Reflect](),
	"teach": reflect.TypeFor[forge.Teach](), "request_changes": reflect.TypeFor[forge.RequestChanges](),
}

// What a person's messages are described as is what is read.
func TestWishSchemas(t *testing.T) {
	for name, typ := range acts {
		members := []string{}
		for field, schema := range protoSchema(typ)["properties"].(doc) {
			value := map[any]string{
				"string": `"x"`, "integer": "1", "number": "1.5",
				"object": `{"type": "KNOWLEDGE_TYPE_LESSON", "confidence": "CONFIDENCE_HIGH", "content": "x"}`,
			}[schema.(doc)["type"]]
			if list, ok := schema.(doc)["enum"].([]string); ok {
				value = `"` + list[0] + `"`
			}
			members = append(members, `"`+field+`": `+value)
		}
		data := `{"id": "x", "to": {"intent": "a"}, "` + name + `": {` + strings.Join(members, ", ") + `}}`
		ev, err := wire.Events.ParseJSON([]byte(data))
		if err != nil || messages.Verb(ev.Message) != name {
			t.Errorf("%s: %q, %v", data, messages.Verb(ev.Message), err)
		}
	}
}

// What the schema of a submission allows is what is read, and nothing else is.
func TestSubmissionSchema(t *testing.T) {
	examples := map[string]string{
		"title": `"t"`, "body": `"b"`, "type": `"fix"`, "risk": `"low"`, "source": `"system"`, "depends_on": `["a"]`, "criteria": `["c"]`, "labels": `["l"]`,
		"priority": `1`, "agent": `"claude"`, "budget_usd": `1.5`, "recipe": `"r"`, "with": `{"A": "b"}`, "project": `"shop"`,
		"origin": `{"system": "s", "event_id": "1", "actor": "ada"}`, "actor": `"ada"`, "id": `"mine"`,
	}
	for format, further := range map[string][]string{"JSON": {"id", "origin"}, "CloudEvents": {"actor"}} {
		schema := submissionSchema(further...)["properties"].(doc)
		for name := range schema {
			members := map[string]string{"title": examples["title"], "body": examples["body"]}
			if format == "JSON" {
				members["origin"] = `{"system": "s"}`
			}
			members[name] = cmp.Or(examples[name], `"x"`)
			var list []string
			for field, value := range members {
				list = append(list, `"`+field+`": `+value)
			}
			data := "{" + strings.Join(list, ", ") + "}"
			if format == "CloudEvents" {
				data = `{"specversion": "1.0", "type": "` + submitted.Type + `", "source": "s", "id": "1", "data": ` + data + `}`
			}
			if _, err := (submission{from: shop, data: []byte(data)}).read(); err != nil {
				t.Errorf("%s: %s: %v", format, name, err)
			}
		}
		data := `{"nonsense": 1}`
		if format == "CloudEvents" {
			data = `{"specversion": "1.0", "type": "` + submitted.Type + `", "source": "s", "id": "1", "data": ` + data + `}`
		}
		_, err := submission{from: shop, data: []byte(data)}.read()
		if err == nil {
			t.Fatal("nonsense is read")
		}
		_, known, _ := strings.Cut(err.Error(), "what is: ")
		known, _, _ = strings.Cut(known, ";")
		allowed := strings.Split(known, ", ")
		slices.Sort(allowed)
		var described []string
		for name := range schema {
			described = append(described, name)
		}
		slices.Sort(described)
		if !slices.Equal(allowed, described) {
			t.Errorf("%s: what is read is %v, what is described %v", format, allowed, described)
		}
	}
}

// The events in the guide have the fields of the code, and those alone.
func TestGuideEvents(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide-systems.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, m := range regexp.MustCompile("(?ms)^```json\n(.*?)^```$").FindAllSubmatch(page, -1) {
		switch {
		case bytes.Contains(m[1], []byte(refusalType)):
			found["refusal"]++
			sameFields[changes.CloudEvent[Refusal]](t, m[1])
		case bytes.Contains(m[1], []byte("specversion")):
			found["change"]++
			sameFields[changes.CloudEvent[document.Change]](t, m[1])
		}
	}
	if found["refusal"] != 1 || found["change"] != 1 {
		t.Errorf("in the page are %v", found)
	}
}

// sameFields reads a text and writes it again.
func sameFields[T any](t *testing.T, text []byte) {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Error(err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(again, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the page has %v, the code %v", want, got)
	}
}

// Every subject of the description is one that is read or written.
func TestDescribedSubjects(t *testing.T) {
	for name, one := range asyncAPI()["channels"].(doc) {
		address, ok := one.(doc)["address"].(string)
		if !ok {
			continue
		}
		subject := strings.NewReplacer("{project}", "shop", "{system}", "ci", "{intent}", "a", "{person}", "ada").Replace(address)
		var err error
		switch {
		case strings.HasPrefix(subject, "forge.intent."):
			_, err = subjects.ParseIntent(subject)
		case strings.HasPrefix(subject, "forge.api."):
			_, err = subjects.ParseAPI(subject)
		case strings.HasPrefix(subject, "forge.refusal."):
			var want string
			if want, err = subjects.Refusal("shop", "ci"); want != subject {
				t.Errorf("%s: nothing is published on %s", name, subject)
			}
		default:
			var want string
			what := changes.Kind(subject[strings.LastIndexByte(subject, '.')+1:])
			want, err = subjects.Change(forge.Key{Project: "shop", Intent: "a"}, string(what))
			if err == nil && (want != subject || !slices.Contains(changes.Kinds(), what)) {
				t.Errorf("%s: nothing is published on %s", name, subject)
			}
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
