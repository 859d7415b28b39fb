package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// world is an installation: a server, a runner, an analyzer that finds one risky task, and a
// gateway.
type world struct {
	t    testing.TB
	nats *bustest.Server
	bus  *bus.Bus // of the runner
	// base is where the gateway is, secrets the tokens by the names of their entries.
	base    string
	secrets map[string]string
	file    string // of the tokens
	log     *locked
	metrics *telemetry.Recorder // of gateways; nil: none
	// analysis is what the analyzer finds; nil: a risky task.
	analysis func(*forge.Command) *forge.Analysis
	// told are the notifications of the runner; nil: none.
	told *notify.Config
}

// locked is a log that is written to by several.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// entries are those of the file of tokens. %s stands for the hash.
var entries = map[string]string{
	"ada":     "person: ada, accounts: {work: U0ADA0001}, projects: {shop: [requester, approver, operator]}",
	"bob":     "person: bob, accounts: {work: U0BOB0001}, projects: {shop: [approver]}",
	"viewer":  "person: vic, accounts: {work: U0VIC0001}, projects: {shop: [viewer]}",
	"banker":  "person: ban, projects: {bank: [requester, approver, operator]}",
	"every":   `person: eve, projects: {"*": [auditor]}`,
	"scanner": "system: scanner, projects: {shop: [requester]}",
	"former":  "person: ada, projects: {shop: [requester, approver, operator]}, expires: 2020-01-01T00:00:00Z",
}

// start starts an installation without a runner.
func start(t testing.TB, settings gateway.Settings) *world {
	t.Helper()
	w := &world{t: t, nats: bustest.StartServer(t), secrets: map[string]string{}, file: filepath.Join(t.TempDir(), "tokens.yaml"), log: &locked{}}
	w.bus = w.nats.Connect(t)
	w.writeTokens(entries)
	settings.Listen, settings.Tokens = "127.0.0.1:0", w.file
	_, w.base = w.gateway(settings)
	return w
}

// writeTokens writes the file of tokens, with a new token for each entry that
// has none; one that begins with a login gets none.
func (w *world) writeTokens(list map[string]string) {
	w.t.Helper()
	text := "tokens:\n"
	for name, rest := range list {
		if strings.HasPrefix(rest, "login: ") {
			text += "  " + name + ": {" + rest + "}\n"
			continue
		}
		if w.secrets[name] == "" {
			w.secrets[name], _ = tokens.Make()
		}
		text += "  " + name + ": {sha256: " + sha(w.secrets[name]) + ", " + rest + "}\n"
	}
	if err := os.WriteFile(w.file+".new", []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(w.file+".new", w.file); err != nil {
		w.t.Fatal(err)
	}
}

// gateway runs a gateway until what it returns is called, or the test ends.
func (w *world) gateway(settings gateway.Settings) (stop func(), base string) {
	w.t.Helper()
	g, stop := runsGateway(w.t, gateway.Config{
		Settings: &settings, Bus: w.nats.Connect(w.t), Log: slog.New(slog.NewTextHandler(w.log, nil)), Metrics: w.metrics,
	})
	return stop, "http://" + g.Addr().String()
}

// decides runs a runner and an analyzer until the test ends.
func (w *world) decides(quotas quota.Limits) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	ready := make(chan struct{})
	running.Go(func() {
		err := runner.Run(ctx, runner.Config{
			Bus: w.bus, Log: slog.New(slog.DiscardHandler), Serve: true, Quotas: quotas, Ready: func() { close(ready) }, Notify: w.told,
			Rules: runner.RulesConfig{Alone: true},
		})
		if err != nil {
			w.t.Error(err)
		}
	})
	wait.For(w.t, ready)
	wait.Until(w.t, "the runner tells what there is", func() bool {
		_, err := w.bus.Submissions.List(wait.Context(w.t), "shop", "gateway", requests.ListRequest{})
		return err == nil
	})
	running.Go(func() {
		err := w.bus.Commands.Consume(ctx, work.Config{Step: forge.StepAnalyze, Replica: "one", Parallel: 1}, func(ctx context.Context, j *work.Job) error {
			found := &forge.Analysis{Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
			if w.analysis != nil {
				found = w.analysis(&j.Command)
			}
			return w.bus.Results.Publish(ctx, forge.Result{To: j.Command.To, Attempt: j.Command.Attempt, Replica: "one", Output: found})
		})
		if err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

// answer is one of the gateway.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

// request asks as the holder of a token; headers are pairs of name and value.
func (w *world) request(who, method, path, body string, headers ...string) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(wait.Context(w.t), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if who != "" {
		r.Header.Set("Authorization", "Bearer "+w.secrets[who])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.send(r)
}

// send sends a request and reads the answer.
func (w *world) send(r *http.Request) answer {
	w.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, text: string(data)}
	_ = json.Unmarshal(data, &a.body)
	conforms(w.t, r, &a)
	return a
}

// wants checks the status of an answer, and that its text has something.
func (a answer) wants(t testing.TB, about string, status int, texts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: %d %s, want %d", about, a.status, a.text, status)
	}
	for _, text := range texts {
		if !strings.Contains(a.text, text) {
			t.Errorf("%s: %s, want %s", about, a.text, text)
		}
	}
	if status >= http.StatusBadRequest && (a.header.Get("Content-Type") != "application/problem+json" || a.body["request"] == "") {
		t.Errorf("%s: %v %s is no problem of RFC 9457", about, a.header, a.text)
	}
}

const intents = "/api/v1/projects/shop/intents"

// proposed returns an intent of ada that waits for approval, and the hash of its plan.
func (w *world) proposed(key string) (path, plan string) {
	w.t.Helper()
	made := w.request("ada", http.MethodPost, intents, `{"title": "Risky", "body": "Do it."}`, "Idempotency-Key", key)
	made.wants(w.t, "submit", http.StatusCreated, `"result":"new"`)
	path = made.header.Get("Location")
	wait.Until(w.t, "it waits for approval", func() bool {
		shown := w.request("ada", http.MethodGet, path, "")
		plan, _ = shown.body["plan"].(string)
		return shown.body["waiting"] == "approval" && plan != ""
	})
	return path, plan
}

func TestMain(m *testing.M) {
	wait.Beside()
	os.Exit(m.Run())
}
