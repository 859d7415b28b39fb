package requests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// FuzzAct: whatever a person says, it is a message that runners store and read
// back as it is, or an error that names a reason.
func FuzzAct(f *testing.F) {
	for verb, data := range map[string]string{
		"edit": `{"title": "t", "risk": "low"}`, "approve": `{"plan": "d6b94d4dcc51"}`, "reject": `{"reason": "no"}`,
		"answer": `{"index": 0, "question": "q", "answer": "a"}`, "retry": `{"instructions": "i", "budget_usd": 1e308, "adopt": "3f786850e387"}`,
		"cancel": `{"task": "a-001"}`, "pause": ``, "resume": `{"task": "../x", "task": 1}`, "teach": `{}`,
	} {
		f.Add(verb, data)
	}
	f.Fuzz(func(t *testing.T, verb, data string) {
		m, err := ReadAct(verb, []byte(data))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		ev := forge.Event{ID: "x", To: forge.Key{Project: "shop", Intent: "a"}, Message: m}
		stored, err := wire.Events.Marshal(&ev)
		if err != nil {
			t.Fatalf("%s %q: %v", verb, data, err)
		}
		if again, err := wire.Events.Unmarshal(stored); err != nil || !cmp.Equal(again, ev) {
			t.Errorf("%s %q: %v\n%s", verb, data, err, cmp.Diff(ev, again))
		}
	})
}

// FuzzRead: a person's request for messages is refused, or is about a stream
// that people may read, and matches no subject of another project.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"read": "last", "subject": "forge.journal.shop.a"}`, `{"read": "lasts", "subject": "forge.journal.*.a"}`, `{"read": "idle", "wait": true}`,
		`{"read": "next", "subject": "forge.transcript.shop.*.*.*.*.*", "after": 4611686018427387903, "since": "2026-01-02T03:04:05Z"}`,
		`{"read": "lasts", "subject": "$O.FORGE_TRANSCRIPTS.M.>"}`, `{"read": "first", "subject": "forge.dead.commands.bank"}`,
		`{"read": "next", "subject": "$O.FORGE_TRANSCRIPTS.M.eA==", "content": "x"}`, `{"read": "last", "subject": "forge.project.>"}`,
	} {
		f.Add([]byte(s))
	}
	readable := []string{streams.Journal, streams.Projects, streams.Transcripts, streams.Dead, streams.BucketTranscripts.Stream()}
	f.Fuzz(func(t *testing.T, data []byte) {
		q := reading{project: "shop"}
		var err error
		if q.Read, err = parseRead(data); err == nil {
			err = q.place()
		}
		if err != nil || q.What == conn.ReadIdle {
			return
		}
		found := false
		for _, s := range readable {
			found = found || s == q.stream
		}
		of, ok := subjects.ProjectOf(q.Subject)
		if name, object := objects.Named(streams.BucketTranscripts, q.Subject); object {
			of, ok = name.Project, true
		}
		all := q.Subject == streams.BucketTranscripts.Metas() && q.What == conn.ReadLasts // of which each is looked at
		if !found || !all && (!ok || of != "shop") {
			t.Errorf("%q reads %q of %s", data, q.Subject, q.stream)
		}
	})
}

// FuzzRequest: what people and gateways ask runners and implementers for is
// refused with a reason, or has no more than is allowed.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"intents": ["a", "b"], "before": "2026-01-02T03:04:05Z", "after": "a", "dry_run": true}`))
	f.Add([]byte(`{"intents": ["../../x"]}`))
	f.Add([]byte(`{"intents": [], "intents": null}`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, data []byte) {
		req, err := readCleanRequest(data)
		for _, id := range req.Intents {
			if _, bad := forge.ParseIntentID(string(id)); err == nil && bad != nil {
				t.Errorf("%q names %q", data, id)
			}
		}
		if err == nil && len(req.Intents) > MaxClean || err != nil && err.Error() == "" {
			t.Errorf("%q: %d intents, %v", data, len(req.Intents), err)
		}
		var fields int
		err = readRequest(data, func(*jsonobject.Object) { fields++ })
		if err == nil && fields != 1 {
			t.Errorf("%q was read %d times", data, fields)
		}
	})
}

// FuzzAnswer: the answers of whoever may answer come to a terminal, so that their ids are ids.
func FuzzAnswer(f *testing.F) {
	f.Add(`a`, `done`)
	f.Add("\x1b[31m", `planned`)
	f.Fuzz(func(t *testing.T, id, status string) {
		c := Cleaned{Intents: []CleanedIntent{{ID: forge.IntentID(id), Status: forge.Status(status)}}, Kept: []KeptIntent{{ID: forge.IntentID(id)}}}
		_, bad := forge.ParseIntentID(id)
		if err := c.check(); err == nil && (bad != nil || !forge.Status(status).Ended()) {
			t.Errorf("%q with %q is printed", id, status)
		}
	})
}

// FuzzIntentFor: what a caller submits through a gateway is a valid intent of
// the project and of that caller, or is refused with a reason.
func FuzzIntentFor(f *testing.F) {
	f.Add("ci", "key", `{"title": "t", "body": "b"}`, false)
	f.Add("ada", "", `{"id": "a", "title": "t", "body": "b", "source": "human"}`, true)
	f.Add("ada", "k", `{"title": "t", "body": "b", "source": "system", "requesters": [{"name": "bob", "proven": true}]}`, true)
	f.Fuzz(func(t *testing.T, name, key, data string, person bool) {
		c := &Caller{Name: name, Gateway: "gateway", Person: person}
		in, err := (&Submissions{}).ReadIntentFor("shop", c, key, []byte(data))
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a reason")
			}
			return
		}
		source := map[bool]forge.Source{true: forge.SourceHuman, false: forge.SourceSystem}[person]
		if in.Project != "shop" || in.Source != source || in.Validate() != nil || person && in.Origin.Actor != name || !person && in.Origin.System != name {
			t.Errorf("%q of %q became %+v, %v", data, name, in, in.Validate())
		}
		for _, who := range in.Requesters {
			if who.Proven {
				t.Errorf("%q says that %s is proven to ask", data, who.Name)
			}
		}
	})
}
