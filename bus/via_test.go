package bus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestThroughAGateway: what a person asks a gateway for is journaled as that
// person's, with the gateway and what it says of them.
func TestThroughAGateway(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	st := newStrict(t)
	gateway := st.connect("gateway", "gateway")
	ruling, err := gateway.Submissions.Ask(ctx, forge.Event{
		ID: "1", To: key, Actor: "ada", Via: "gateway", Account: "token ada-laptop", Ref: "r1", Message: &forge.Approve{Plan: "d6b94d4dcc51"},
	})
	if err != nil || ruling.Decision != forge.Applied {
		t.Fatalf("%+v, %v", ruling, err)
	}
	ev := wait.For(t, st.seen)
	if ev.Actor != "ada" || ev.Via != "gateway" || ev.Account != "token ada-laptop" || ev.Ref != "r1" || ev.Signature == "" {
		t.Errorf("journaled is %+v", ev)
	}
	_, err = gateway.Submissions.Ask(ctx, forge.Event{ID: "2", To: key, Actor: "ada", Message: &forge.Cancel{}})
	if !strings.Contains(errText(err), "does not permit it") {
		t.Errorf("a gateway speaks as ada herself: %v", err)
	}
}

// errText returns the text of an error; empty for none.
func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWhatComesThroughAGateway: a gateway names whom it speaks for, others name
// no gateway, and no commands come that way.
func TestWhatComesThroughAGateway(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	s := guardedServer(t)
	seen := decider(ctx, t, connectAs(ctx, t, s, "runner", "RUNNER"))
	admin := connectAs(ctx, t, s, "admin", "ADMIN")
	nc, _ := as(t, s, "admin")
	const via, by = "forge.intent.shop.by.ada.via.gateway.", "forge.intent.shop.by.ada."
	const to = `"id": "x", "to": {"intent": "a"}, `
	for _, wrong := range []struct{ subject, data, reason string }{
		{via + "cancel", `{` + to + `"cancel": {}}`, "account"},
		{via + "cancel", `{` + to + `"account": "token a\nb", "cancel": {}}`, "control character"},
		{via + "cancel", `{` + to + `"account": " ", "cancel": {}}`, "account"},
		{via + "cancel", `{` + to + `"account": "t\u202e", "cancel": {}}`, "hides or reorders text"},
		{via + "cancel", `{` + to + `"account": "t", "ref": "r\u200b", "cancel": {}}`, "ref"},
		{via + "cancel", `{` + to + `"account": "t", "ref": "` + strings.Repeat("x", 501) + `", "cancel": {}}`, "501 bytes"},
		{via + "cancel", `{` + to + `"account": "t", "actor": "bob", "cancel": {}}`, `says that it is from "bob"`},
		{via + "cancel", `{` + to + `"account": "t", "via": "other", "cancel": {}}`, "leave signature and via out"},
		{by + "cancel", `{` + to + `"account": "t", "cancel": {}}`, "is for gateways to say"},
		{by + "cancel", `{` + to + `"ref": "t", "cancel": {}}`, "is for gateways to say"},
		{
			via + "submit", `{` + to + `"account": "t", "submit": {"intent": {"title": "t", "body": "b", "criteria": ["c"],
				"checks": [{"criterion": 1, "command": "make"}]}}}`, "cannot be set through a gateway",
		},
		{"forge.intent.shop.from.ci.via.gateway.submit", `{"title": "t", "body": "b", "origin": {"event_id": "1"}}`, "account"},
		{"forge.intent.shop.from.ci.submit", `{"account": "t", "submit": {"intent": {"title": "t", "body": "b"}}}`, "is for gateways to say"},
	} {
		if err := nc.Publish(wrong.subject, []byte(wrong.data)); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, wrong.data+" is put aside: "+wrong.reason, func() bool {
			dead, err := admin.Dead(ctx)
			if err != nil || len(dead) == 0 {
				return false
			}
			var last bus.DeadLetter
			for _, d := range dead {
				if string(d.Excerpt) == wrong.data && d.Subject == wrong.subject {
					last = d
				}
			}
			return strings.Contains(last.Reason, wrong.reason)
		})
	}
	if err := nc.PublishMsg(&nats.Msg{Subject: via + "cancel", Data: []byte(`{` + to + `"account": "t", "cancel": {}}`)}); err != nil {
		t.Fatal(err)
	}
	if ev := wait.For(t, seen); ev.ID != "x" || ev.Actor != "ada" || ev.Via != "gateway" {
		t.Errorf("%+v", ev)
	}
}
