package outside

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	hookevents "github.com/pfl-forge/pfl-forge/services/gateway/hooks/events"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Who can lie, steal, fail, be twice or be absent where a system asks through a hook: one without the secret; one with it, who asks for what
// its entry may not; a body with a command, or of another project; an event that comes twice, late, or in another order; the runner that is
// away; a gateway that is killed when it has answered; one event that cannot be done, before others.

const (
	hookOfSystems = "correct-horse-battery-staple"
	submitType    = "io.pfl-forge.intent.submit.v1"
)

// hookWorld is an installation with two hooks of the system scanner.
type hookWorld struct {
	*world

	hooks []hooks.Hook
	file  string // of the hooks
}

// withHooks starts everything but a runner and a reader.
func withHooks(t *testing.T) *hookWorld {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	w := &hookWorld{file: filepath.Join(dir, "hooks.yaml")}
	text := fmt.Sprintf("hooks:\n  - {name: findings, kind: standard, secrets: [%[1]s], entry: scanner}\n"+
		"  - {name: events, kind: cloudevents, secrets: [%[1]s], entry: scanner}\n", secret)
	for path, text := range map[string]string{secret: hookOfSystems, w.file: text} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if w.hooks, err = hooks.Parse("hooks.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	w.world = start(t, gateway.Settings{})
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.log.String())
		}
	})
	return w
}

// reader returns a reader with a bus of its own; alter changes its settings.
func (w *hookWorld) reader(alter func(*hookevents.Config)) *hookevents.Reader {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	log := slog.New(slog.NewTextHandler(w.log, nil))
	book, err := tokens.Open(w.world.file, log, time.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	cfg := hookevents.Config{
		Hooks: w.hooks, Deliveries: b.Deliveries, API: api.New(api.Config{Bus: b, Account: "gateway", Tokens: book, Log: log}), Tokens: book,
		Gateway: "gateway", Log: log, Again: 10 * time.Millisecond,
	}
	if alter != nil {
		alter(&cfg)
	}
	return hookevents.New(cfg)
}

// reads runs a reader until what it returns is called, or the test ends.
func (w *hookWorld) reads(r *hookevents.Reader) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := wait.For(w.t, ended); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// sending is something that a system sends.
type sending struct {
	hook, body string
	header     http.Header
}

// standard is a submission as the Standard Webhooks have it.
func standard(id, data string) sending {
	body, at := fmt.Sprintf(`{"type": %q, "timestamp": "2026-11-20T10:00:00Z", "data": %s}`, submitType, data), fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(hookOfSystems))
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return sending{"findings", body, http.Header{
		"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	}}
}

// structured and binary are a CloudEvent in each of its forms.
func structured(id, source, data string) sending {
	body := fmt.Sprintf(`{"specversion": "1.0", "type": %q, "source": %q, "id": %q, "data": %s}`, submitType, source, id, data)
	return sending{"events", body, http.Header{"Authorization": {"Bearer " + hookOfSystems}, "Content-Type": {"application/cloudevents+json"}}}
}

func binary(id, source, data string) sending {
	return sending{"events", data, http.Header{
		"Authorization": {"Bearer " + hookOfSystems}, "Content-Type": {"application/json"},
		"Ce-Specversion": {"1.0"}, "Ce-Type": {submitType}, "Ce-Source": {source}, "Ce-Id": {id},
	}}
}

// post sends it to a gateway, and returns the status of the answer.
func (w *hookWorld) post(base string, s sending) int {
	w.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(w.t), http.MethodPost, base+"/hooks/"+s.hook, strings.NewReader(s.body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header = s.header.Clone()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// store has the door of a gateway that is gone by now store it.
func (w *hookWorld) store(list ...sending) {
	w.t.Helper()
	stop, base := w.serves()
	for _, s := range list {
		if got := w.post(base, s); got != http.StatusAccepted {
			w.t.Fatalf("%s is answered with %d", s.body, got)
		}
	}
	stop()
}

// serves runs a door without a reader.
func (w *hookWorld) serves() (stop func(), base string) {
	w.t.Helper()
	mux := http.NewServeMux()
	hooks.NewDoor(hooks.Config{Hooks: w.hooks, Store: w.bus.Deliveries.Store, Log: slog.New(slog.DiscardHandler)}).Mount(mux)
	srv := httptest.NewServer(mux)
	w.t.Cleanup(srv.Close)
	return srv.Close, srv.URL
}

// titles waits for so many intents of the project shop, and returns their titles, sorted.
func (w *hookWorld) titles(n int) (list []string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("there are %d intents", n), func() bool {
		found, err := w.bus.Journal.Summaries(wait.Context(w.t), "shop")
		return err == nil && len(found) >= n
	})
	found, err := w.bus.Journal.Summaries(wait.Context(w.t), "shop")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range found {
		list = append(list, s.Title)
	}
	slices.Sort(list)
	return list
}

// dead waits for so many dead letters, and returns their reasons.
func (w *hookWorld) dead(n int) (list []string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("there are %d dead letters", n), func() bool {
		found, err := w.bus.Dead(wait.Context(w.t))
		list = nil
		for _, d := range found {
			list = append(list, d.Subject+" "+d.Reason)
		}
		return err == nil && len(list) >= n
	})
	return list
}

const finding = `{"title": "Update the parser", "body": "Use 1.3.", "risk": "low", "labels": ["security"], "actor": "ada"}`

// TestHookBecomesAnIntent: what a system sends to the gateway's hooks is one intent of the system, whatever its form, however often, late and
// in whatever order it comes; and none for whoever does not know the secret.
func TestHookBecomesAnIntent(t *testing.T) {
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

// TestHookOutlivesItsGateway: what was answered with 202 is submitted by the next gateway, once, also if the former one had submitted it and was
// killed before it could store that.
func TestHookOutlivesItsGateway(t *testing.T) {
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

// TestHookWithoutARunner: while no runner is up, what comes is stored where runners look, so that no other delivery can push it out; the next
// runner decides it.
func TestHookWithoutARunner(t *testing.T) {
	w := withHooks(t)
	w.reads(w.reader(nil))
	w.store(structured("finding-1", "scanner", finding), structured("finding-2", "scanner", finding))
	wait.Until(t, "both are handed on", func() bool { return w.marks() == 2 })
	w.decides(quota.Limits{})
	if got := w.titles(2); len(got) != 2 {
		t.Errorf("the intents are %q", got)
	}
}

// TestHookRefusals: what is wrong is among the dead letters of its project with its field, once, over restarts as well; what comes behind it is
// done, and what the entry may not is never done.
func TestHookRefusals(t *testing.T) {
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

// TestHookHasTheRolesOfItsEntry: roles, quotas and the end of an entry count for what comes by its hooks as they do by HTTP; what a quota keeps
// out comes in when there is room, and is given up when it has waited for too long.
func TestHookHasTheRolesOfItsEntry(t *testing.T) {
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
