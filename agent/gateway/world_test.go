package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// environment is a look-up of variables.
func environment(kv ...string) Lookup {
	return func(name string) (string, error) {
		for _, e := range kv {
			if key, value, _ := strings.Cut(e, "="); key == name {
				return value, nil
			}
		}
		return "", nil
	}
}

// fixed returns variables that never change.
func fixed(kv ...string) func() Lookup { return func() Lookup { return environment(kv...) } }

// start starts a gateway with the accounts that the variables define.
func start(t *testing.T, cfg Config, kv ...string) *Gateway {
	t.Helper()
	if cfg.Variables == nil {
		cfg.Variables = fixed(kv...)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func open(t *testing.T, g *Gateway, p Provider, limit Limit) *Grant {
	t.Helper()
	grant, err := g.Open(t.Context(), p, limit)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

// model is an upstream that remembers what it got.
type model struct {
	*httptest.Server
	got chan *http.Request
}

func newModel(t *testing.T, answer http.HandlerFunc) *model {
	t.Helper()
	m := &model{got: make(chan *http.Request, 100)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		m.got <- r
		answer(w, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// next returns the next request that the model gets.
func (m *model) next(t *testing.T) *http.Request {
	t.Helper()
	return wait.For(t, m.got)
}

const whole = `{"type":"message","model":"claude-sonnet-5","usage":{"input_tokens":10,"output_tokens":2,` +
	`"cache_read_input_tokens":3,"cache_creation_input_tokens":4}}`

func plainAnswer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// client never shares a connection with another test, nor follows redirects.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// variables splits an environment.
func variables(env []string) map[string]string {
	out := map[string]string{}
	for _, kv := range env {
		key, value, _ := strings.Cut(kv, "=")
		out[key] = value
	}
	return out
}

// post sends a request as the CLI of a grant would.
func post(t *testing.T, grant *Grant, path string, header ...string) (int, string) {
	t.Helper()
	resp, err := send(t.Context(), t, grant, http.MethodPost, path, `{"model":"m"}`, header...)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func send(ctx context.Context, t *testing.T, grant *Grant, method, path, body string, header ...string) (*http.Response, error) {
	t.Helper()
	env := variables(grant.Env())
	key := grant.account.key
	req, err := http.NewRequestWithContext(ctx, method, env[grant.account.api.baseVar]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(key.header, key.scheme+env[key.variable])
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	return client(t).Do(req)
}
