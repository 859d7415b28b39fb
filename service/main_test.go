package service

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

const (
	// childEnv makes the test binary a service of its own.
	childEnv = "SERVICE_TEST_CHILD"
	// patienceEnv says how long that service tries refused credentials again; by default
	// not at all.
	patienceEnv = "SERVICE_TEST_PATIENCE"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		do := untilCancelled
		if mode == "finish" {
			do = finish
		}
		p := newProcess("analyzer")
		p.refusedFor, _ = time.ParseDuration(os.Getenv(patienceEnv))
		os.Exit(p.main(func(ctx context.Context, env *Env) error {
			return env.Worker(Handler{Step: forge.StepAnalyze, Do: do}).Run(ctx)
		}))
	}
	wait.Beside()
	goleak.VerifyTestMain(m)
}

func untilCancelled(ctx context.Context, _ forge.Command, _ Progress) forge.Result {
	<-ctx.Done()
	return forge.Result{Output: &forge.Failure{Reason: forge.FailKilled, Message: "cancelled"}}
}

func finish(context.Context, forge.Command, Progress) forge.Result {
	return forge.Result{Output: &forge.Analysis{NothingToDo: "it is expensive to find that out"}}
}

func proc(args ...string) (*process, chan os.Signal, *testoutput.Output, *testoutput.Output) {
	signals := make(chan os.Signal, 2)
	var stdout, stderr testoutput.Output
	return &process{
		name: "reviewer", args: args, signals: signals, stdout: &stdout, stderr: &stderr, overtime: time.Minute,
		getenv: env(map[string]string{"HOME": "/h", "FORGE_REPLICA": "a"}),
	}, signals, &stdout, &stderr
}

func TestHelpNamesEverySetting(t *testing.T) {
	t.Parallel()
	p, _, stdout, stderr := proc("--help")
	if code := p.main(nil); code != 0 || stderr.String() != "" {
		t.Errorf("exit %d, %q", code, stderr)
	}
	for _, s := range settings() {
		if !strings.Contains(stdout.String(), "--"+s.flag+" ") || !strings.Contains(stdout.String(), s.env) {
			t.Errorf("--%s (%s) is missing", s.flag, s.env)
		}
	}
}

func TestVersionAndUsageErrors(t *testing.T) {
	t.Parallel()
	p, _, stdout, _ := proc("--version")
	if code := p.main(nil); code != 0 || !strings.HasPrefix(stdout.String(), "reviewer ") {
		t.Errorf("exit %d, %q", code, stdout)
	}
	p, _, _, stderr := proc("--workers=0")
	if code := p.main(nil); code != 1 || !strings.HasPrefix(stderr.String(), "reviewer: --workers (FORGE_WORKERS)") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	tests := map[string]struct {
		signals int
		run     func(ctx context.Context) error
		want    int
	}{
		"ends by itself":       {0, func(context.Context) error { return nil }, 0},
		"fails":                {0, func(context.Context) error { return boom }, 1},
		"drains":               {1, func(ctx context.Context) error { <-ctx.Done(); return nil }, 0},
		"drains, says so":      {1, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 0},
		"fails while draining": {1, func(ctx context.Context) error { <-ctx.Done(); return boom }, 1},
		"canceled undrained":   {0, func(context.Context) error { return context.Canceled }, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, signals, _, stderr := proc()
			for range tt.signals {
				signals <- syscall.SIGTERM
			}
			cfg := &Config{Log: LogConfig{Format: "json"}}
			got := p.supervise(newLogger(stderr, cfg), cfg, func(ctx context.Context, _ *Env) error { return tt.run(ctx) })
			if got != tt.want {
				t.Errorf("exit %d, want %d: %s", got, tt.want, stderr)
			}
		})
	}
}

func TestSecondSignalAndOvertime(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stuck)
	wg.Add(2)
	run := func(context.Context, *Env) error {
		defer wg.Done()
		<-stuck
		return nil
	}
	p, signals, _, stderr := proc()
	cfg := &Config{Log: LogConfig{Format: "json"}, DrainTimeout: time.Hour}
	signals <- syscall.SIGINT
	signals <- syscall.SIGINT
	if got := p.supervise(newLogger(stderr, cfg), cfg, run); got != 130 {
		t.Errorf("second signal: exit %d", got)
	}
	p, signals, _, stderr = proc()
	p.overtime = time.Millisecond
	cfg = &Config{Log: LogConfig{Format: "json"}}
	signals <- syscall.SIGTERM
	if got := p.supervise(newLogger(stderr, cfg), cfg, run); got != 1 || !strings.Contains(stderr.String(), "not drained in time") {
		t.Errorf("overtime: exit %d, %s", got, stderr)
	}
}

func TestHealthEndpoint(t *testing.T) {
	t.Parallel()
	h := &Health{}
	connected := errors.New("not connected")
	h.Add("nats", func(context.Context) error { return connected })
	h.Add("consumers", func(context.Context) error { return nil })
	var log testoutput.Output
	addr, stop, err := h.serve(t.Context(), "127.0.0.1:0", newLogger(&log, &Config{}))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr.String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, strings.TrimSpace(string(b))
	}
	expect := func(method, path string, code int, body string) {
		t.Helper()
		if c, b := ask(method, path); c != code || b != body {
			t.Errorf("%s %s: %d %q, want %d %q", method, path, c, b, code, body)
		}
	}
	expect("GET", "/livez", 200, "ok")
	expect("GET", "/readyz", 503, "nats: not connected")
	connected = nil
	expect("GET", "/readyz", 200, "ok")
	expect("GET", "/", 404, "404 page not found")
	expect("POST", "/readyz", 405, "only GET is answered")
	expect("GET", "/readyz?verbose", 200, `{"ready":true,"draining":false,"missing":[],"facts":[]}`)
	since := time.Date(2026, 11, 26, 7, 2, 0, 0, time.UTC)
	unknown := error(nil)
	h.Know(func(context.Context) ([]Fact, error) {
		return []Fact{{Project: "shop", Fact: forge.FailOrigin, Of: forge.GitOrigin, Why: "no route", Since: since}}, unknown
	})
	expect("GET", "/readyz?verbose", 200, `{"ready":true,"draining":false,"missing":[],`+
		`"facts":[{"project":"shop","fact":"origin","of":"git origin","why":"no route","since":"2026-11-26T07:02:00Z"}]}`)
	expect("GET", "/readyz", 200, "ok") // a fact of a project makes no service unready
	connected, unknown = errors.New("gone"), errors.New("no answer")
	var first, second state
	for _, into := range []*state{&first, &second} {
		code, body := ask("GET", "/readyz?verbose")
		if err := json.Unmarshal([]byte(body), into); err != nil || code != 503 || into.Ready || into.Unknown != "no answer" {
			t.Fatal(code, body, err)
		}
	}
	if m := first.Missing; len(m) != 1 || m[0].Check != "nats" || m[0].Why != "gone" || m[0].Since.IsZero() || !m[0].Since.Equal(second.Missing[0].Since) {
		t.Errorf("%+v, then %+v", first, second)
	}
	connected = nil
	h.Drain()
	expect("GET", "/readyz?verbose", 503, `{"ready":false,"draining":true,"missing":[],`+
		`"facts":[{"project":"shop","fact":"origin","of":"git origin","why":"no route","since":"2026-11-26T07:02:00Z"}],"facts_unknown":"no answer"}`)
	expect("GET", "/readyz", 503, "draining")
	expect("GET", "/livez", 200, "ok")

	if _, _, err := h.serve(t.Context(), addr.String(), newLogger(&log, &Config{})); err == nil || !strings.Contains(err.Error(), "FORGE_LISTEN") {
		t.Errorf("an address in use: %v", err)
	}
}
