package outside

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/api"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	hookevents "github.com/pfl-forge/pfl-forge/services/gateway/hooks/events"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Who can lie, steal, fail, be twice or be absent where a system asks through a hook: one without
// the secret; one with it, who asks for what its entry may not; a body with a command, or of
// another project; an event that comes twice, late, or in another order; the runner that is away;
// a gateway that is killed when it has answered; one event that cannot be done, before others.

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
	return runs(w.t, r.Run)
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
