package bus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	nc := raw(t, s)
	m := nats.NewMsg("forge.intent.shop.by.ada.submit")
	m.Header.Set("Nats-Msg-Id", "scan-1")
	m.Header.Set("Content-Type", "application/json")
	m.Data = []byte(`{"submit": {"intent": {"id": "fix-login", "title": "Fix the login", "risk": "RISK_MED", "priority": 3, "with": {"A": "b"}}}}`)
	if _, err := nc.RequestMsg(m, wait.Patience); err != nil {
		t.Fatal(err)
	}
	put(t, nc, "forge.intent.shop.by.ada.answer", []byte(`
		{"id": "a1", "to": {"intent": "fix-login"}, "answer": {"index": 1, "answer": "yes"}}`))
	seen := collect(t, b)
	for range 2 {
		switch ev := wait.For(t, seen); ev.ID {
		case "scan-1":
			in := forge.As[*forge.Submit](ev.Message).Intent
			if ev.To != key || ev.Actor != "ada" || in.Source != forge.SourceHuman {
				t.Errorf("got %+v", ev)
			}
			if in.Project != "shop" || in.Risk != forge.RiskMed || in.Priority != 3 || in.With["A"] != "b" {
				t.Errorf("got %+v", ev)
			}
		case "a1":
			if ev.To != key || *forge.As[*forge.Answer](ev.Message) != (forge.Answer{Index: 1, Answer: "yes"}) {
				t.Errorf("got %+v", ev)
			}
		default:
			t.Errorf("unexpected event %+v", ev)
		}
	}
}

// TestGarbage puts garbage on every subject that a runner reads: it becomes a
// dead letter with a reason, and what comes after it is handled.
func TestGarbage(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	seen := collect(t, b)
	nc := raw(t, s)
	intents := []struct{ subject, data, reason string }{
		{"forge.intent.shop.by.ada.submit", "\xff\xfe", "unexpected EOF"},
		{"forge.intent.shop.by.ada.submit", "", `holds ""`},
		{"forge.intent.shop.by.ada.submit", `{"submit": {`, "not a valid Event"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"intent": {"id": "a", "colour": "red"}}}`, "unknown field"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"intent": {"id": "a", "risk": "RISK_HUGE"}}}`, "RISK_HUGE"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "to": {"intent": "a"}, "approve": {}}`, `sent as "submit", but holds "approve"`},
		{"forge.intent.shop.by.ada.merged", `{"id": "x", "to": {"intent": "a"}, "mergeEnded": {}}`, `holds ""`},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"intent": {"id": "A*"}}}`, "only a-z"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"intent": {}}}`, "is empty"},
		{"forge.intent.shop.by.ada.submit", `{"submit": {"intent": {"id": "a"}}}`, "id is missing"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"intent": {"id": "a", "project": "bank"}}}`, `submits to "bank"`},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "to": {"intent": "b"}, "submit": {"intent": {"id": "a"}}}`, `submits intent "a"`},
		{"forge.intent.SHOP.by.ada.cancel", `{"id": "x", "to": {"intent": "a"}, "cancel": {}}`, "only a-z"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "actor": "bob", "submit": {"intent": {"id": "a"}}}`, `from "bob"`},
		{"forge.intent.shop.by.ada.pause", `{"id": "x", "to": {"intent": "a"}, "pause": {"number": 7}}`, "pause.number: is not for a sender"},
		{
			"forge.intent.shop.by.ada.retry", `{"id": "x", "to": {"intent": "a"}, "retry": {"requesters": [{"name": "bob"}]}}`,
			"retry.requesters: is not for a sender",
		},
		{
			"forge.intent.shop.by.ada.approve", `{"id": "x", "to": {"intent": "a"}, "anchor": "forge.project.shop@1:00", "approve": {"plan": "p"}}`,
			"anchor: is for machines to say",
		},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"preapproved": true, "intent": {"id": "a"}}}`, "preapproved: is not for a sender to say"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"intent": {"id": "a", "parent": "b"}}}`, "parent: is not for a sender"},
		{"forge.intent.shop.by.ada.submit", `{"id": "x", "submit": {"intent": {"id": "a", "source": "SOURCE_REFLECTION"}}}`, "source: is not for a sender"},
		{"forge.intent.shop.by.a=zz.submit", `{"id": "x", "submit": {"intent": {"id": "a"}}}`, "an escape that is none"},
		{"forge.intent.shop.by.=61.submit", `{"id": "x", "submit": {"intent": {"id": "a"}}}`, "not how a name is escaped"},
	}
	for _, g := range intents {
		put(t, nc, g.subject, []byte(g.data))
	}
	dead := deadLetters(ctx, t, b, len(intents))
	for i, g := range intents {
		d := dead[uint64(i+1)]
		if !strings.Contains(d.Reason, g.reason) || d.Subject != g.subject || string(d.Excerpt) != g.data {
			t.Errorf("%s %q is a dead letter because of %q, want %q", g.subject, g.data, d.Reason, g.reason)
		}
	}
	for _, subject := range []string{
		"forge.result.analyze.shop.fix-login", "forge.result.nonsense.shop.fix-login", "forge.wake.shop", "forge.wake.shop.fix-login",
	} {
		put(t, nc, subject, []byte("\xff\xfe"))
	}
	for { // by stream and sequence they are not distinct
		list, err := b.Dead(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == len(intents)+4 {
			break
		}
	}
	if err := b.Submissions.Send(ctx, submit(key)); err != nil {
		t.Fatal(err)
	}
	if err := b.Results.Publish(ctx, result(1, "a")); err != nil {
		t.Fatal(err)
	}
	note := forge.Event{ID: "enter", To: key.ProjectKey(), Message: &forge.AdmitRun{Run: 1}}
	if err := b.Effects.Dispatch(ctx, key, forge.Effects{Outbox: []forge.Event{note}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		wait.For(t, seen)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := bustest.StartServer(t)
	b := s.Connect(t)
	collect(t, b)
	nc := raw(t, s)
	sub, err := nc.SubscribeSync("_INBOX.answers")
	if err != nil {
		t.Fatal(err)
	}
	m := nats.NewMsg("forge.intent.shop.by.ada.submit")
	m.Header.Set("Forge-Reply", "_INBOX.answers")
	m.Data = []byte(`{"id": "x", "submit": {"intent": {"id": "a", "colour": "red"}}}`)
	if _, err := nc.RequestMsg(m, wait.Patience); err != nil {
		t.Fatal(err)
	}
	reply, err := sub.NextMsgWithContext(ctx)
	if err != nil || !strings.Contains(string(reply.Data), "colour") {
		t.Errorf("the sender was told %q, %v", reply.Data, err)
	}
}
