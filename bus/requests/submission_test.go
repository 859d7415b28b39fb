package requests

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	forgev1 "github.com/pfl-forge/pfl-forge/proto/forge/v1"
)

var shop = subjects.Sender{Project: "shop", Verb: "submit"}

// formats is one submission in every format.
func formats(t *testing.T) map[string]submission {
	t.Helper()
	text := `{"submit": {"intent": {"title": "Update the parser", "body": "CVE-2026-1", "risk": "RISK_LOW", "dependsOn": ["a"],
		"origin": {"system": "/scanner", "eventId": "4711", "actor": "ada"}}}}`
	ev := &forgev1.Event{}
	if err := protojson.Unmarshal([]byte(text), ev); err != nil {
		t.Fatal(err)
	}
	binary, err := proto.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]submission{
		"protobuf":  {from: shop, data: binary},
		"called so": {from: shop, contentType: "application/protobuf", data: binary},
		"protojson": {from: shop, data: []byte(text)},
		"JSON": {from: shop, contentType: "application/json", data: []byte(`{"title": "Update the parser", "body": "CVE-2026-1", "risk": "low",
			"depends_on": ["a"], "origin": {"system": "/scanner", "event_id": "4711", "actor": "ada"}}`)},
		"CloudEvents": {from: shop, contentType: "application/cloudevents+json; charset=UTF-8", data: []byte(`{"specversion": "1.0",
			"type": "io.pfl-forge.intent.submit.v1", "source": "/scanner", "id": "4711", "time": "2026-11-20T10:00:00Z", "team": "blue",
			"data": {"title": "Update the parser", "body": "CVE-2026-1", "risk": "low", "depends_on": ["a"], "actor": "ada"}}`)},
	}
}

// The same event of the same system is the same intent in every format.
func TestFormatsAreOneIntent(t *testing.T) {
	want := forge.Event{
		ID: "submit/4711-j85shsagnh7i1g31", To: forge.Key{Project: "shop", Intent: "4711-j85shsagnh7i1g31"}, Actor: "/scanner",
		Message: &forge.Submit{Intent: forge.Intent{
			ID: "4711-j85shsagnh7i1g31", Project: "shop", Settings: forge.Settings{
				Title:     "Update the parser",
				Body:      "CVE-2026-1",
				Risk:      forge.RiskLow,
				DependsOn: []forge.IntentID{"a"},
			}, Source: forge.SourceSystem,
			Origin:     forge.Origin{System: "/scanner", EventID: "4711", Actor: "ada"},
			Requesters: []forge.Identity{{Name: "ada"}},
		}},
	}
	for name, s := range formats(t) {
		for _, from := range []subjects.Sender{shop, {Project: "shop", Verb: "submit", Named: true, Name: "/scanner"}} {
			s.from = from
			got, err := s.read()
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v\n%s", name, err, diff)
			}
		}
	}
}

// An id follows from project, system and event, and from nothing else.
func TestOriginIDs(t *testing.T) {
	seen := map[forge.IntentID]string{}
	for _, p := range []forge.ProjectID{"a", "b"} {
		for _, system := range []string{"", "x", "xy", "https://ci.example.com/build"} {
			for _, event := range []string{"", "y", "1", "-", "../../etc", "é*", "refs/heads/main@{1}", strings.Repeat("long-", 100)} {
				id := originID(p, forge.Origin{System: system, EventID: event, Actor: "somebody"})
				if _, err := forge.ParseIntentID(string(id)); err != nil || len(id) > 40 {
					t.Errorf("%q %q: %v", system, event, err)
				}
				if id != originID(p, forge.Origin{System: system, EventID: event}) {
					t.Errorf("%q %q: the actor matters", system, event)
				}
				if other, ok := seen[id]; ok {
					t.Errorf("%s %q %q has the id of %s", p, system, event, other)
				}
				seen[id] = fmt.Sprintf("%s %q %q", p, system, event)
			}
		}
	}
}

// Without an id of the event, what identifies the message identifies the intent.
func TestOwnIdentity(t *testing.T) {
	for _, tt := range []struct{ data, fallback, event, id string }{
		{`{"title": "t", "body": "b", "origin": {"system": "s"}}`, "7@99", "7@99", ""},
		{`{"title": "t", "body": "b", "origin": {"system": "s"}, "id": "mine"}`, "7@99", "mine", "mine"},
		{`{"id": "e1", "submit": {"intent": {"title": "t", "body": "b", "origin": {"system": "s"}}}}`, "7@99", "e1", ""},
		{`{"to": {"intent": "mine"}, "submit": {"intent": {"title": "t", "body": "b", "origin": {"system": "s"}}}}`, "7@99", "mine", "mine"},
	} {
		ev, err := submission{from: shop, data: []byte(tt.data), fallback: tt.fallback}.read()
		if err != nil {
			t.Errorf("%s: %v", tt.data, err)
			continue
		}
		in := forge.As[*forge.Submit](ev.Message).Intent
		if in.Origin.EventID != tt.event || tt.id != "" && string(in.ID) != tt.id || tt.id == "" && in.ID != originID("shop", in.Origin) {
			t.Errorf("%s: %+v", tt.data, in)
		}
	}
}

// A system names checks of the project, and their criteria are in words that say so.
func TestSubmittedChecks(t *testing.T) {
	const data = `{"title": "t", "body": "b", "origin": {"system": "s"}, "criteria": ["it is documented", {"check": "tests"}]}`
	ev, err := submission{from: shop, data: []byte(data), fallback: "1"}.read()
	if err != nil {
		t.Fatal(err)
	}
	in := forge.As[*forge.Submit](ev.Message).Intent
	checks, criteria := []forge.Check{{Criterion: 2, Name: "tests"}}, []string{"it is documented", "check tests passes"}
	if !slices.Equal(in.Checks, checks) || !slices.Equal(in.Criteria, criteria) {
		t.Errorf("got %q with %+v", in.Criteria, in.Checks)
	}
}

// What is wrong is told by field, all of it at once.
func TestSubmissionErrors(t *testing.T) {
	const ok = `"title": "t", "body": "b", "origin": {"system": "s", "event_id": "1"}`
	ce := func(s string) string {
		return `{"specversion": "1.0", "type": "io.pfl-forge.intent.submit.v1", ` + s + `}`
	}
	for _, tt := range []struct{ data, want string }{
		{
			`{` + ok + `, "titel": "x", "priority": "high", "labels": "a"}`,
			`labels: is not a list of strings; priority: is not a whole number; titel: is not known`,
		},
		{
			`{` + ok + `, "criteria": ["a", {"type": "command", "command": "true"}, {"check": "tests", "timeout": "1s"}, {"name": "x"}, {}, 5]}`,
			`criteria[1].command: can be set by people only; name a check of the project: {"check": "tests"}; criteria[2].command: can be set by people only`,
		},
		{`{` + ok + `, "criteria": [{"name": "x"}]}`, `criteria[0].check: is empty; criteria[0].name: is not known; what is: check`},
		{`{` + ok + `, "criteria": [5]}`, `criteria[0]: is neither a string nor an object with check`},
		{`{` + ok + `, "criteria": [{"check": "a b"}]}`, `criteria[0].check: is "a b", which is no name of a check`},
		{`{` + ok + `, "criteria": [{"check": "tests"}, {"check": "tests"}]}`, `criteria[1]: is given twice`},
		{`{` + ok + `, "criteria": ["check tests passes", {"check": "tests"}]}`, `criteria[0]: reads like one that a command decides, and is none`},
		{`{` + ok + `, "checks": [{"criterion": 1, "name": "tests"}]}`, `checks: is not known`},
		{
			`{"submit": {"intent": {` + ok + `, "criteria": ["` + "`true` exits with 0" + `"], "checks": [{"criterion": 1, "command": "true"}]}}}`,
			`criteria[0].command: can be set by people only; name a check of pfl-forge.yaml`,
		},
		{
			`{"submit": {"intent": {` + ok + `, "criteria": ["all is well"], "checks": [{"criterion": 1, "name": "tests"}]}}}`,
			`checks: do not belong to the criteria`,
		},
		{`{` + ok + `, "source": "human"}`, `source: is "human"; what comes this way is from a system`},
		{`{` + ok + `, "source": "reflection"}`, `source: is "reflection"`},
		{`{` + ok + `, "parent": "x"}`, `parent: is not known`},
		{`{` + ok + `, "id": "x"}`, `id: follows from origin; leave one of them out`},
		{`{` + ok + `, "project": "bank"}`, `project: is "bank", but it was sent to "shop"`},
		{`{` + ok + `, "risk": "huge"}`, `risk: is "huge"; it can be low, med or high`},
		{`{` + ok + `, "title": "again"}`, `title: is given twice`},
		{`{` + ok + `, "Title": "again"}`, `Title: is not known`},
		{`{"title": "t", "body": "b"}`, `origin.system: is empty`},
		{
			`{"title": "t", "body": "b", "origin": {"system": "s\u001b", "event_id": "` + strings.Repeat("x", 501) + `"}}`,
			`origin.event_id: has 501 bytes; at most 500 are allowed; origin.system: holds a control character`,
		},
		{`{"title": "t", "body": "b", "origin": {"system": "s", "eventid": "1"}}`, `origin.eventid: is not known`},
		{`{"body": "b", "origin": {"system": "s"}}`, `title: is empty`},
		{`{` + ok + `} {}`, `has something after its end`},
		{`{"title": `, `is not JSON`},
		{
			`{"submit": {"intent": {"title": "t", "body": "b", "parent": "p", "status": "STATUS_APPROVED", "origin": {"system": "s"}}}}`,
			`parent: is not for a sender to say; leave it out; status: is not for a sender`,
		},
		{`{"anchor": "forge.project.shop@1:00", "submit": {"intent": {"title": "t"}}}`, `anchor: is for machines to say`},
		{`{"submit": {"preapproved": true, "intent": {"title": "t"}}}`, `submit.preapproved: is not for a sender to say`},
		{
			`{"submit": {"intent": {"title": "t", "depth": 3, "generation": 1}}}`,
			`depth: is not for a sender to say; leave it out; generation: is not`,
		},
		{`{"submit": {"intent": {"title": "t", "source": "SOURCE_HUMAN"}}}`, `source: is "human"`},
		{`{"to": {"project": "bank"}, "submit": {"intent": {"project": "shop"}}}`, `to.project: is "bank", but it submits to "shop"`},
		{`{"to": {"intent": "a"}, "approve": {}}`, `it was sent as "submit", but holds "approve"`},
		{`{"submit": {"intent": {"colour": "red"}}}`, `unknown field`},
		{
			`{"specversion": "0.3"}`,
			`data: is missing; it is the intent, as a JSON object; id: is empty; say which event of the source this is; ` +
				`source: is empty; say which system sends this; specversion: is "0.3"; it can be 1.0; type: is ""`,
		},
		{ce(`"source": "s", "id": "1", "data": "text"`), `data: is not a JSON object`},
		{ce(`"source": "s", "id": "1", "data_base64": "e30="`), `data: is missing`},
		{
			ce(`"source": "s", "id": "1", "time": "noon", "datacontenttype": "text/xml", "data": {"title": "t", "origin": {}}`),
			`actor, project; datacontenttype: is "text/xml"; it can be application/json; time: is not a time`,
		},
		{"\xff\xfe", notOneOf},
		{"garbage", notOneOf},
		{"[]", notOneOf},
		{"hello\nworld", notOneOf},
		{`"Update the parser"`, notOneOf},
		{"\xfa\x07\x01x", "unknown"},
		{"", `is empty; it is to be the intent, as a JSON object or a protobuf Event`},
	} {
		_, err := submission{from: shop, data: []byte(tt.data)}.read()
		if _, ok := errors.AsType[*SubmissionError](err); !ok || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n got %v\nwant %s", tt.data, err, tt.want)
		}
	}
	other := submission{from: subjects.Sender{Project: "shop", Verb: "submit", Named: true, Name: "ci"}, data: []byte(`{` + ok + `}`)}
	if _, err := other.read(); err == nil || !strings.Contains(err.Error(), `origin.system: is "s", but its sender may speak for "ci" only`) {
		t.Errorf("a foreign system: %v", err)
	}
	for kind, want := range map[string]string{
		"a/b/c":                "Content-Type: ",
		"text/xml":             `Content-Type: is "text/xml"; it can be application/json, application/cloudevents+json or application/protobuf, or be left out`,
		"application/protobuf": notOneOf,
	} {
		bad := submission{from: shop, contentType: kind, data: []byte(`{` + ok + `}`)}
		if _, err := bad.read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("content type %s: %v", kind, err)
		}
	}
}

// FuzzSubmission: whatever comes, it is an intent of a system in the project that it was
// sent to, or an error that names a reason.
func FuzzSubmission(f *testing.F) {
	for _, s := range []string{`{"title": "t", "body": "b", "origin": {"system": "s"}}`, `{"specversion": "1.0"}`, "\x0a\x01x", `{"submit": {"intent": {}}}`} {
		f.Add(s, "application/json")
		f.Add(s, "")
	}
	f.Fuzz(func(t *testing.T, data, contentType string) {
		ev, err := submission{from: shop, contentType: contentType, data: []byte(data), fallback: "1@2"}.read()
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		in := forge.As[*forge.Submit](ev.Message).Intent
		if in.Source != forge.SourceSystem || ev.To.Project != "shop" || in.Project != "shop" || in.ID != ev.To.Intent || in.Validate() != nil {
			t.Errorf("%q became %+v", data, ev)
		}
	})
}

// Comments are told in place of asking, in JSON and in protobuf, of the intent
// that follows from the origin or is named.
func TestCommentsInASubmission(t *testing.T) {
	const dated = `{"origin": {"system": "x", "event_id": "1"}, "comments": {"count": 1, "account": "a", "ref": "x", "at": `
	const comments = `"comments": {"count": 2, "account": "eve", "ref": "findings/1 comment 7", "at": "2026-11-20T11:00:00Z"}`
	for name, text := range map[string]string{
		"JSON":      `{"origin": {"system": "/scanner", "event_id": "4711"}, ` + comments + `}`,
		"protojson": `{"submit": {"intent": {"origin": {"system": "/scanner", "eventId": "4711"}}, ` + comments + `}}`,
	} {
		ev, err := submission{from: shop, data: []byte(text)}.read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m := forge.As[*forge.Submit](ev.Message)
		if ev.To.Intent != "4711-j85shsagnh7i1g31" || ev.Actor != "/scanner" || m.Comments == nil || m.Comments.Count != 2 || m.Comments.At.IsZero() ||
			m.Intent.Title != "" || m.Intent.Requesters != nil {
			t.Errorf("%s: %+v %+v", name, ev, m.Comments)
		}
	}
	for text, want := range map[string]string{
		`{"id": "a", "title": "a", ` + comments + `}`:                         "title: is not known; what is: id, project, origin, comments",
		`{"submit": {"intent": {"id": "a", "title": "a"}, ` + comments + `}}`: "title: changes nothing of an intent that comments are told of",
		`{"origin": {"system": "x", "event_id": "1"}, "comments": {}}`:        "comments.count: is 0; it can be 1 to 10000",
		`{"origin": {"system": "x"}, "comments": {"words": "x"}}`:             "comments.words: is not known",
		`{"origin": {"system": "x"}, "comments": {"at": "today"}}`:            "comments.at: is not a time",
		// What has no place in a Timestamp could be decided on, and never written down.
		dated + `"0000-06-01T00:00:00Z"}}`:      "comments.at: is not in the years",
		dated + `"9999-12-31T23:59:59-23:00"}}`: "comments.at: is not in the years",
	} {
		if _, err := (submission{from: shop, data: []byte(text)}).read(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
