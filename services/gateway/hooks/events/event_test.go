package events

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const submission = `{"title": "Mend it", "body": "It crashes."}`

// TestEventOf: what came is the CloudEvent that its sender meant, in each form,
// or is refused by its field.
func TestEventOf(t *testing.T) {
	const typ = "io.pfl-forge.intent.submit.v1"
	for name, test := range map[string]struct {
		kind hooks.Kind
		d    deliveries.Delivery
		want string // of the error, or id, source and type
	}{
		"structured": {hooks.CloudEvents, deliveries.Delivery{
			ID: "7 ci", Event: typ, ContentType: "application/cloudevents+json; charset=utf-8",
			Body: []byte(`{"specversion": "1.0", "id": "7", "source": "ci", "type": "` + typ + `", "data": ` + submission + `}`),
		}, "7 ci " + typ},
		"binary": {hooks.CloudEvents, deliveries.Delivery{
			ID: "7 ci", Event: typ, ContentType: "application/json", Body: []byte(submission),
		}, "7 ci " + typ},
		"binary, by a digest": {hooks.CloudEvents, deliveries.Delivery{ID: "3f78", Event: typ, Body: []byte(submission)}, "3f78 scanner " + typ},
		"standard": {hooks.Standard, deliveries.Delivery{
			ID: "msg_7", Event: "webhook", ContentType: "application/json",
			Body: []byte(`{"type": "` + typ + `", "timestamp": "2026-11-20T10:00:00Z", "data": ` + submission + `}`),
		}, "msg_7 scanner " + typ},
		"of text": {hooks.CloudEvents, deliveries.Delivery{
			ID: "7 ci", ContentType: "text/plain", Body: []byte(`"x"`),
		}, "datacontenttype: is \"text/plain\""},
		"no JSON":                {hooks.Standard, deliveries.Delivery{ID: "7", Body: []byte(`{"type": `)}, "is not JSON"},
		"two documents":          {hooks.Standard, deliveries.Delivery{ID: "7", Body: []byte(`{} {}`)}, "is not JSON"},
		"a list":                 {hooks.Standard, deliveries.Delivery{ID: "7", Body: []byte(`[]`)}, "is no object with type, timestamp and data"},
		"another type of a type": {hooks.Standard, deliveries.Delivery{ID: "7", Body: []byte(`{"type": 7}`)}, "is no object with type"},
	} {
		text, err := eventOf(test.kind, "scanner", &test.d)
		if err != nil {
			if _, ok := errors.AsType[*fieldError](err); !ok || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%s: %v, want %s", name, err, test.want)
			}
			continue
		}
		var e cloudEvent
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		data := strings.ReplaceAll(string(e.Data), " ", "")
		if got := e.ID + " " + e.Source + " " + e.Type; got != test.want || e.SpecVersion != "1.0" || data != strings.ReplaceAll(submission, " ", "") {
			t.Errorf("%s: %s is %s, want %s", name, text, got, test.want)
		}
	}
}

// TestProjectOf: the event names its project, unless the entry has only one.
func TestProjectOf(t *testing.T) {
	one := map[string][]tokens.Role{"shop": {tokens.Requester}}
	two := map[string][]tokens.Role{"shop": {tokens.Requester}, "docs": {tokens.Requester}}
	all := map[string][]tokens.Role{"*": {tokens.Requester}, "shop": {tokens.Requester}}
	for _, test := range []struct {
		event    string
		projects map[string][]tokens.Role
		want     string
	}{
		{`{"data": {}}`, one, "shop"},
		{`{"data": {"project": "docs"}}`, one, "docs"}, // the API refuses it
		{`{"data": {"project": "docs"}}`, two, "docs"},
		{`{"data": {}}`, two, "data.project: is missing, and the entry ci has several projects"},
		{`{}`, all, "data.project: is missing"},
		{`{"data": 7}`, one, "shop"}, // the same
		{`{"data": {"project": "../x"}}`, one, "data.project: "},
	} {
		p, err := projectOf(json.RawMessage(test.event), &tokens.Token{Name: "ci", System: "ci", Projects: test.projects})
		if err == nil && string(p) != test.want || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s is for %q, %v; want %s", test.event, p, err, test.want)
		}
	}
}

// FuzzEvent: whatever came, it is refused with a reason, or is a JSON object of
// which an id and a source that were not signed are nothing new.
func FuzzEvent(f *testing.F) {
	f.Add(true, "application/json", "7 ci", submission)
	f.Add(true, "application/cloudevents+json", "7 ci", `{"specversion": "1.0"}`)
	f.Add(false, "", "msg_7", `{"type": "x", "timestamp": "y", "data": {"project": "../x"}}`)
	f.Fuzz(func(t *testing.T, cloud bool, contentType, id, body string) {
		kind := map[bool]hooks.Kind{true: hooks.CloudEvents, false: hooks.Standard}[cloud]
		event, err := eventOf(kind, "scanner", &deliveries.Delivery{ID: id, ContentType: contentType, Body: []byte(body)})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		if !json.Valid(event) {
			t.Fatalf("%q is %q", body, event)
		}
		if p, err := projectOf(event, &tokens.Token{Name: "ci", System: "ci"}); err == nil && strings.ContainsAny(string(p), "./ *>") {
			t.Errorf("%q is for %q", body, p)
		}
		var e cloudEvent
		if !cloud && (json.Unmarshal(event, &e) != nil || e.Source != "scanner" || e.ID != strings.ToValidUTF8(id, "\ufffd")) {
			t.Errorf("%q of %q became %s", body, id, event)
		}
	})
}
