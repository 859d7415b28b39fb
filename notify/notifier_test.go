package notify_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/gateway"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server on which intents change.
type world struct {
	t   *testing.T
	bus *bus.Bus
	n   int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	b := bustest.Start(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { b.Changes.Publish(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return &world{t: t, bus: b}
}

// intent makes an intent that is in a state at once.
func (w *world) intent(project string, status forge.Status, waiting forge.Waiting) string {
	w.t.Helper()
	w.n++
	key := forge.Key{Project: forge.ProjectID(project), Intent: forge.IntentID(fmt.Sprintf("i%d", w.n))}
	rec := forge.Record{
		Events: []forge.Event{{ID: "s", To: key, Message: &forge.Submit{Intent: forge.Intent{
			ID: key.Intent, Project: key.Project, Settings: forge.Settings{
				Title: "t",
			}, Source: forge.SourceHuman,
		}}}},
		Summary: forge.Summary{
			Key: key, Title: "Title\x1b[31m of " + string(key.Intent), Status: status, Waiting: waiting, Reason: "because", RunSummary: forge.RunSummary{
				Run: 1,
			},
			UpdatedAt: time.Now(), CreatedAt: time.Now(),
		},
	}
	if _, err := w.bus.Journal.Append(w.t.Context(), key, chain.Head{}, rec); err != nil {
		w.t.Fatal(err)
	}
	return string(key.Intent)
}

// config is a file of notifications.
func config(t *testing.T, text string) *notify.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notifications.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := notify.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// tells runs a notifier until what it returns is called.
func (w *world) tells(cfg *notify.Config) (stop func()) {
	w.t.Helper()
	n := &notify.Notifier{
		Bus: w.bus, Log: slog.New(slog.DiscardHandler), Config: cfg,
		Backoff: func(int) time.Duration { return time.Millisecond },
	}
	if err := n.Prepare(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return stop
}

// hook is a webhook that remembers what it got.
type hook struct {
	*httptest.Server
	got    chan *http.Request
	bodies chan string
	answer func(n int, w http.ResponseWriter) // nil: 204
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{got: make(chan *http.Request, 1000), bodies: make(chan string, 1000)}
	n := 0
	path := "/" + rand.Text()
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, path) { // another test's client, for whoever had the port before
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		n++
		if h.answer != nil {
			h.answer(n, w)
		}
		h.got <- r
		h.bodies <- string(body)
	}))
	h.URL += path
	t.Cleanup(h.Close)
	return h
}

// next returns the type and the intent, or the count, of the next notification.
func (h *hook) next(t *testing.T) (what string, r *http.Request, body string) {
	t.Helper()
	body = wait.For(t, h.bodies)
	var ev struct {
		Type string
		Data struct {
			Intent string
			Count  int
		}
	}
	if err := json.Unmarshal([]byte(body), &ev); err != nil {
		t.Fatal(err, body)
	}
	what = strings.TrimSuffix(strings.TrimPrefix(ev.Type, "io.pfl-forge."), ".v1") + " " + ev.Data.Intent
	if ev.Data.Count > 0 {
		what += fmt.Sprint(ev.Data.Count)
	}
	return what, <-h.got, body
}

func (h *hook) want(t *testing.T, want string) (*http.Request, string) {
	t.Helper()
	got, r, body := h.next(t)
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	return r, body
}

// Each target is told of what it wants, signed, and of nothing else.
func TestWebhook(t *testing.T) {
	w, all, some := newWorld(t), newHook(t), newHook(t)
	secret := filepath.Join(t.TempDir(), "secret")
	address := filepath.Join(t.TempDir(), "url")
	for path, text := range map[string]string{secret: "s3cret\n", address: some.URL + "/hook?token=x\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.tells(config(t, `notifications:
  all: {webhook: "`+all.URL+`", secret_file: `+secret+`}
  some:
    on: [failed, budget]
    projects: [shop]
    webhook_file: `+address+`
`))
	waiting := w.intent("shop", forge.StatusProposed, forge.WaitingApproval)
	r, body := all.want(t, "intent.waiting "+waiting)
	if !notify.Verify("s3cret", r.Header.Get("Forge-Signature"), []byte(body)) || notify.Verify("other", r.Header.Get("Forge-Signature"), []byte(body)) {
		t.Errorf("signature %q", r.Header.Get("Forge-Signature"))
	}
	if r.Header.Get("Content-Type") != "application/cloudevents+json" || !strings.Contains(body, `"id":"`+r.Header.Get("Forge-Event-Id")+`"`) {
		t.Errorf("headers %v of %s", r.Header, body)
	}
	w.intent("shop", forge.StatusExecuting, forge.WaitingPaused)
	broke := w.intent("shop", forge.StatusExecuting, forge.WaitingBudget)
	blocked := w.intent("shop", forge.StatusBlocked, forge.WaitingFailed)
	done := w.intent("shop", forge.StatusDone, "")
	foreign := w.intent("bank", forge.StatusError, forge.WaitingFailed)
	last := w.intent("shop", forge.StatusError, forge.WaitingFailed)
	w.intent("shop", forge.StatusCancelled, "")
	for _, want := range []string{"waiting " + broke, "blocked " + blocked, "done " + done, "error " + foreign, "error " + last} {
		all.want(t, "intent."+want)
	}
	for _, want := range []string{"waiting " + broke, "blocked " + blocked, "error " + last} {
		r, _ := some.want(t, "intent."+want)
		if r.URL.RawQuery != "token=x" || r.Header.Get("Forge-Signature") != "" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
	}
}

// What comes too fast becomes one notification, which is not lost by a restart.
func TestRateLimit(t *testing.T) {
	w, h := newWorld(t), newHook(t)
	cfg := config(t, `notifications: {chat: {webhook: "`+h.URL+`", most: 2, window: 24h}}`)
	stop := w.tells(cfg)
	for range 2 {
		h.want(t, "intent.done "+w.intent("shop", forge.StatusDone, ""))
	}
	for range 30 {
		w.intent("shop", forge.StatusDone, "")
	}
	w.intent("shop", forge.StatusBlocked, forge.WaitingFailed)
	for { // all are published
		if behind, err := w.bus.Changes.Behind(t.Context(), "notify-chat"); err != nil {
			t.Fatal(err)
		} else if behind == 31 {
			break
		}
	}
	if len(h.bodies) > 0 {
		t.Error("more than the limit")
	}
	stop() // the window is not waited for
	_, body := h.want(t, "notification.more 31")
	if !strings.Contains(body, "31 more: 30 done, 1 failed") {
		t.Error(body)
	}
	defer w.tells(cfg)()
	h.want(t, "intent.done "+w.intent("shop", forge.StatusDone, ""))
}

// The next window begins with what came too fast in the one before.
func TestWindow(t *testing.T) {
	w, h := newWorld(t), newHook(t)
	w.tells(config(t, `notifications: {chat: {webhook: "`+h.URL+`", most: 1, window: 1s}}`))
	h.want(t, "intent.done "+w.intent("shop", forge.StatusDone, ""))
	for range 5 {
		w.intent("shop", forge.StatusDone, "")
	}
	h.want(t, "notification.more 5")
}

// Restarts lose nothing and repeat nothing.
func TestRestarts(t *testing.T) {
	w, h := newWorld(t), newHook(t)
	cfg := config(t, `notifications: {chat: {webhook: "`+h.URL+`", most: 1000}}`)
	w.tells(cfg)() // it is known from now on
	want := map[string]bool{}
	for i := range 60 {
		want["intent.done "+w.intent("shop", forge.StatusDone, "")] = true
		if i%7 == 0 {
			stop := w.tells(cfg)
			want["intent.done "+w.intent("shop", forge.StatusDone, "")] = true
			stop()
		}
	}
	w.tells(cfg)
	for len(want) > 0 {
		got, _, _ := h.next(t)
		if !want[got] {
			t.Errorf("%q is told twice", got)
		}
		delete(want, got)
	}
}

// A webhook that fails is tried again; one that refuses is not, and one that fails for
// ever keeps nobody from being told of the next.
func TestRetries(t *testing.T) {
	w, h := newWorld(t), newHook(t)
	h.answer = func(n int, w http.ResponseWriter) {
		switch {
		case n <= 3:
			w.WriteHeader(http.StatusInternalServerError)
		case n == 5:
			w.WriteHeader(http.StatusForbidden)
		case n >= 6 && n <= 13:
			http.Redirect(w, &http.Request{}, "http://127.0.0.1:1/", http.StatusServiceUnavailable)
		}
	}
	w.tells(config(t, `notifications: {chat: {webhook: "`+h.URL+`"}}`))
	flaky := w.intent("shop", forge.StatusDone, "")
	for range 4 {
		h.want(t, "intent.done "+flaky)
	}
	h.want(t, "intent.done "+w.intent("shop", forge.StatusDone, ""))
	hopeless := w.intent("shop", forge.StatusDone, "")
	for range 8 {
		h.want(t, "intent.done "+hopeless)
	}
	h.want(t, "intent.done "+w.intent("shop", forge.StatusDone, ""))
	dead, err := w.bus.Dead(t.Context())
	if err != nil || len(dead) != 2 || !strings.Contains(dead[0].Reason, "notification chat: the webhook answers 403") ||
		!strings.Contains(dead[1].Reason, "503") {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// A command gets the event on its standard input, and what matters as variables.
func TestCommand(t *testing.T) {
	w := newWorld(t)
	out := t.TempDir()
	script := filepath.Join(out, "tell.sh")
	if err := os.WriteFile(script, []byte(`#!/bin/sh
cat > "$1/event.tmp"
echo "$FORGE_EVENT|$FORGE_PROJECT|$FORGE_INTENT|$FORGE_STATUS|$FORGE_WAITING|$FORGE_COUNT|$FORGE_TEXT" > "$1/vars"
test -e "$1/failed" || { touch "$1/failed"; exit 1; }
mv "$1/event.tmp" "$1/event"
`), 0o700); err != nil {
		t.Fatal(err)
	}
	w.tells(config(t, `notifications: {desk: {on: [waiting], command: [`+script+`, `+out+`]}}`))
	id := w.intent("shop", forge.StatusProposed, forge.WaitingClarification)
	var event []byte
	wait.Until(t, "the program is told", func() bool {
		event, _ = os.ReadFile(filepath.Join(out, "event"))
		return event != nil
	})
	vars, err := os.ReadFile(filepath.Join(out, "vars"))
	want := "waiting|shop|" + id + "|proposed|clarification|1|shop/" + id + " waits for you (clarification): Title of " + id + " (because)\n"
	if err != nil || string(vars) != want {
		t.Errorf("%q, %v\nwant %q", vars, err, want)
	}
	if !strings.Contains(string(event), `"type":"io.pfl-forge.intent.waiting.v1"`) {
		t.Errorf("event %q", event)
	}
}

// A command gets the variables of the machine that its program may need, and
// none that are meant for pfl-forge: no way into NATS, no key of a model.
func TestCommandGetsNoneOfOurKeys(t *testing.T) {
	const canary = "a-secret-of-pfl-forge"
	ours := []string{"FORGE_TOKEN_FILE", "FORGE_NKEY", "FORGE_SERVER", "FORGE_AGENT_OURS_API_KEY", "OTEL_EXPORTER_OTLP_HEADERS"}
	for _, name := range append(ours, gateway.Variables()...) {
		t.Setenv(name, canary)
	}
	t.Setenv("CHAT_TOKEN", "of-the-chat")
	w := newWorld(t)
	out := t.TempDir()
	script := filepath.Join(out, "tell.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nenv > \"$1/env.tmp\"\nmv \"$1/env.tmp\" \"$1/env\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.tells(config(t, `notifications: {desk: {on: [waiting], command: [`+script+`, `+out+`]}}`))
	id := w.intent("shop", forge.StatusProposed, forge.WaitingClarification)
	var env []byte
	wait.Until(t, "the program is told", func() bool {
		env, _ = os.ReadFile(filepath.Join(out, "env"))
		return env != nil
	})
	got := string(env)
	if strings.Contains(got, canary) || !strings.Contains(got, "CHAT_TOKEN=of-the-chat\n") || !strings.Contains(got, "FORGE_INTENT="+id+"\n") {
		t.Errorf("the environment is\n%s", got)
	}
}
