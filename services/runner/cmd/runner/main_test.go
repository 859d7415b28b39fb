package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// child makes the test binary the runner.
const child = "RUNNER_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestReadyAfterRecovery: a runner that cannot bring back into force what was under way lives
// and is not ready; it is as soon as it can.
func TestReadyAfterRecovery(t *testing.T) {
	s := bustest.StartServer(t)
	leaveOneUnderWay(t, s)
	s.Stop()
	s.Forbid("$JS.API.DIRECT.GET.FORGE_JOURNAL") // the journals can be listed, and not read
	s.Start(t)
	addr := launch(t, s.URL())
	wait.Until(t, "only recovery is missing", func() bool {
		code, body := get(t, addr, "/readyz")
		return code == http.StatusServiceUnavailable && body == "recovery: what was under way is not in force again yet"
	})
	if code, body := get(t, addr, "/livez"); code != http.StatusOK {
		t.Errorf("/livez: %d %s", code, body)
	}
	s.Stop()
	s.Forbid()
	s.Start(t)
	wait.Until(t, "the runner is ready", func() bool { code, _ := get(t, addr, "/readyz"); return code == http.StatusOK })
}

// leaveOneUnderWay has a runner decide on an intent, and ends it.
func leaveOneUnderWay(t *testing.T, s *bustest.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b := s.Connect(t)
	defer b.Close()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }})
	}()
	wait.For(t, ready)
	in := forge.Intent{
		ID: "fix", Project: "shop", Settings: forge.Settings{Title: "fix", Body: "do it"},
		Source: forge.SourceHuman, Origin: forge.Origin{System: "test", EventID: "1"},
	}
	ruling, err := b.Submissions.Ask(ctx, forge.Event{ID: "1", To: forge.Key{Project: "shop", Intent: "fix"}, Message: &forge.Submit{Intent: in}})
	if err != nil || ruling.Decision != forge.Applied {
		t.Error(ruling, err)
	}
	cancel()
	if err := wait.For(t, ended); err != nil {
		t.Error(err)
	}
}

// launch runs the runner until the test ends, and returns the address of its health endpoint.
func launch(t *testing.T, server string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "--server", server, "--replica=r1", "--listen=127.0.0.1:0", "--state-dir", t.TempDir())
	cmd.Env = append(os.Environ(), child+"=yes", "GORACE=atexit_sleep_ms=0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr, closed := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(closed)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "health endpoint" {
				addr <- line.Addr
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-closed
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return wait.For(t, addr)
}

// get returns what the runner answers.
func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}
