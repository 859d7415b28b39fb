package outside

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	hookevents "github.com/pfl-forge/pfl-forge/services/gateway/hooks/events"
)

// TestHookBecomesAnIntent: what a system sends to the gateway's hooks is one
// intent of the system, whatever its form, however often, late and in whatever
// order it comes; and none for whoever does not know the secret.
func TestHookBecomesAnIntent(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	w.decides(quota.Limits{})
	_, base := w.gateway(gateway.Settings{Listen: "127.0.0.1:0", Tokens: w.world.file, Hooks: w.file})
	list := []sending{
		standard("msg_1", finding), structured("finding-2", "scanner", finding), binary("finding-3", "https://ci.example.com/", finding),
	}
	for range 2 {
		for _, s := range list {
			if got := w.post(base, s); got != http.StatusAccepted {
				t.Fatalf("%s is answered with %d", s.body, got)
			}
		}
		slices.Reverse(list)
	}
	forged := standard("msg_4", finding)
	forged.body += " "
	if got := w.post(base, forged); got != http.StatusUnauthorized {
		t.Errorf("a forged one is answered with %d", got)
	}
	if got := w.titles(3); len(got) != 3 {
		t.Fatalf("the intents are %q", got)
	}
	found, err := w.bus.Journal.Summaries(wait.Context(t), "shop")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, s := range found {
		records, _, err := w.bus.Journal.Load(wait.Context(t), s.Key)
		if err != nil {
			t.Fatal(err)
		}
		ev := records[0].Events[0]
		in := forge.As[*forge.Submit](ev.Message).Intent
		id, _, _ := strings.Cut(in.Origin.EventID, "#")
		known[id] = ev.Account + ", " + ev.Ref
		if in.Origin.System != "scanner" || in.Origin.Actor != "ada" || in.Source != forge.SourceSystem || in.Title != "Update the parser" ||
			!slices.Equal(in.Labels, []string{"security"}) || ev.Via != "gateway" || !slices.Equal(in.Requesters, []forge.Identity{{Name: "ada"}}) {
			t.Errorf("submitted is %+v by %+v", in, ev)
		}
	}
	for id, want := range map[string]string{
		"msg_1": "hook findings, event msg_1", "finding-2": "hook events, event finding-2 scanner",
		"finding-3 https://ci.example.com/": "hook events, event finding-3 https://ci.example.com/",
	} {
		if known[id] != want {
			t.Errorf("%s is journaled as %q, want %q", id, known[id], want)
		}
	}
	if got := w.dead(0); len(got) > 0 {
		t.Errorf("the dead letters are %q", got)
	}
}

// TestHookOutlivesItsGateway: what was answered with 202 is submitted by the next gateway,
// once, also if the former one had submitted it and was killed before it could store that.
func TestHookOutlivesItsGateway(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	w.decides(quota.Limits{})
	w.store(standard("msg_1", finding), structured("finding-2", "scanner", finding))
	stop := w.reads(w.reader(func(c *hookevents.Config) { c.Deliveries = forgetful{c.Deliveries} }))
	w.titles(2)
	stop()
	one, two := w.reader(nil), w.reader(nil) // two gateways with the same hooks
	w.reads(one)
	w.reads(two)
	w.store(standard("msg_3", strings.Replace(finding, "parser", "lexer", 1)))
	if got := w.titles(3); len(got) != 3 || got[0] != "Update the lexer" {
		t.Errorf("the intents are %q", got)
	}
	wait.Until(t, "all are marked", func() bool { return w.marks() == 3 })
	if got := w.dead(0); len(got) > 0 {
		t.Errorf("the dead letters are %q", got)
	}
}

// forgetful is a stream that stores no marks.
type forgetful struct{ hookevents.Deliveries }

func (f forgetful) Store(context.Context, deliveries.Delivery) (bool, error) {
	return false, errors.New("it is killed here")
}

// marks counts the deliveries that are marked as settled.
func (w *hookWorld) marks() (n int) {
	w.t.Helper()
	if _, err := w.bus.Deliveries.After(wait.Context(w.t), 0, func(d deliveries.Delivery) error {
		if d.Hook == hooks.Submitted {
			n++
		}
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestHookWithoutARunner: while no runner is up, what comes is stored where runners
// look, so that no other delivery can push it out; the next runner decides it.
func TestHookWithoutARunner(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	w.reads(w.reader(nil))
	w.store(structured("finding-1", "scanner", finding), structured("finding-2", "scanner", finding))
	wait.Until(t, "both are handed on", func() bool { return w.marks() == 2 })
	w.decides(quota.Limits{})
	if got := w.titles(2); len(got) != 2 {
		t.Errorf("the intents are %q", got)
	}
}

// TestHookRefusals: what is wrong is among the dead letters of its project with its field, once,
// over restarts as well; what comes behind it is done, and what the entry may not is never done.
func TestHookRefusals(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	w.decides(quota.Limits{})
	paid := standard("msg_2", finding)
	paid.body = strings.Replace(paid.body, submitType, "invoice.paid", 1)
	empty := standard("msg_4", "null")
	empty.body = strings.Replace(empty.body, `, "data": null`, "", 1)
	bad := map[string]sending{
		"data.titel: is not known":                             standard("msg_1", `{"titel": "t", "body": "b"}`),
		"criteria[0].command: can be set by":                   structured("finding-1", "scanner", `{"title": "t", "body": "b", "criteria": [{"command": "rm"}]}`),
		`type: is "invoice.paid"`:                              signAgain(paid),
		"this hook may not submit in this project: that takes": structured("finding-3", "scanner", `{"title": "t", "body": "b", "project": "bank"}`),
		"data: is missing":                                     signAgain(empty),
		"datacontenttype: is \"text/plain\"":                   binary("finding-5", "scanner", `"text"`),
		"source: is no URI reference":                          structured("finding-6", "a b", finding),
	}
	text := bad["datacontenttype: is \"text/plain\""]
	text.header.Set("Content-Type", "text/plain")
	for _, s := range bad {
		w.store(s)
	}
	w.store(standard("msg_9", finding))
	stop := w.reads(w.reader(nil))
	if got := w.titles(1); len(got) != 1 {
		t.Errorf("the intents are %q", got)
	}
	list := w.dead(len(bad))
	wait.Until(t, "all are marked", func() bool { return w.marks() == len(bad)+1 })
	for want := range bad {
		if !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("no dead letter says %q:\n%s", want, strings.Join(list, "\n"))
		}
	}
	for _, one := range list {
		if !strings.HasPrefix(one, "forge.intent.shop.from.scanner.via.gateway.submit hook ") && !strings.HasPrefix(one, "forge.intent.bank.from.scanner.") {
			t.Errorf("a dead letter is %q", one)
		}
	}
	stop()
	w.reads(w.reader(nil))
	w.store(standard("msg_10", finding))
	w.titles(2)
	if got := w.dead(len(bad)); len(got) != len(bad) {
		t.Errorf("after a restart the dead letters are %q", got)
	}
}

// signAgain returns what is sent with a signature of its body.
func signAgain(s sending) sending {
	mac := hmac.New(sha256.New, []byte(hookOfSystems))
	fmt.Fprintf(mac, "%s.%s.%s", s.header.Get("Webhook-Id"), s.header.Get("Webhook-Timestamp"), s.body)
	s.header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return s
}

// TestHookHasTheRolesOfItsEntry: roles, quotas and the end of an entry count
// for what comes by its hooks as they do by HTTP; what a quota keeps out comes
// in when there is room, and is given up when it has waited for too long.
func TestHookHasTheRolesOfItsEntry(t *testing.T) {
	t.Parallel()
	w := withHooks(t)
	w.decides(quota.Limits{System: 1})
	list := map[string]string{"ada": entries["ada"], "scanner": "system: scanner, projects: {shop: [viewer]}"}
	w.writeTokens(list)
	stop := w.reads(w.reader(nil))
	w.store(standard("msg_1", finding))
	if got := w.dead(1); !strings.Contains(got[0], "this hook may not submit in this project: that takes the role requester") {
		t.Errorf("a viewer is told %q", got)
	}
	wait.Until(t, "it is marked", func() bool { return w.marks() == 1 })
	stop()
	w.writeTokens(map[string]string{"ada": entries["ada"]})
	stop = w.reads(w.reader(nil))
	w.store(standard("msg_2", finding))
	if got := w.dead(2); !strings.Contains(got[1], "entry scanner: is not in the file of tokens") {
		t.Errorf("without an entry it is told %q", got)
	}
	wait.Until(t, "it is marked", func() bool { return w.marks() == 2 })
	stop()
	w.writeTokens(entries)
	stop = w.reads(w.reader(nil))
	w.store(standard("msg_3", finding))
	w.titles(1)
	w.store(standard("msg_4", strings.Replace(finding, "parser", "lexer", 1)))
	wait.Until(t, "it has to wait", func() bool { return strings.Contains(w.log.String(), "is not submitted yet") })
	found, err := w.bus.Journal.Summaries(wait.Context(t), "shop")
	if err != nil || len(found) != 1 {
		t.Fatalf("the intents are %+v, %v", found, err)
	}
	w.request("ada", http.MethodPost, intents+"/"+string(found[0].Key.Intent)+"/cancel", "{}").wants(t, "cancel", http.StatusOK)
	if got := w.titles(2); len(got) != 2 || got[0] != "Update the lexer" {
		t.Errorf("the intents are %q", got)
	}
	wait.Until(t, "all are marked", func() bool { return w.marks() == 4 })
	stop()
	w.store(standard("msg_5", finding))
	w.reads(w.reader(func(c *hookevents.Config) { c.Within = time.Nanosecond }))
	if got := w.dead(3); !strings.Contains(got[2], "could not be submitted within 1ns") {
		t.Errorf("what waited for too long is told as %q", got)
	}
}
