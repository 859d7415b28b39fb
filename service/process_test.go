package service_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/natsd"
	"github.com/pfl-forge/pfl-forge/service"
)

// child is a service process of its own.
type child struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  chan map[string]any
	addr string // of the health endpoint
	done chan error
}

func startChild(t *testing.T, args ...string) *child {
	t.Helper()
	return startChildThat(t, "goes on", t.TempDir(), args...)
}

// startChildThat starts a service with a state directory, whose attempts go on until
// they are cancelled, or "finish".
func startChildThat(t *testing.T, does, state string, args ...string) *child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "SERVICE_TEST_CHILD="+does, "GORACE=atexit_sleep_ms=0", "FORGE_LISTEN=127.0.0.1:0", "FORGE_STATE_DIR="+state)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, log: make(chan map[string]any, 1000), done: make(chan error, 1)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line map[string]any
			if json.Unmarshal(lines.Bytes(), &line) != nil {
				line = map[string]any{"msg": lines.Text()}
			}
			c.log <- line
		}
		c.done <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	c.addr = c.waitFor("health endpoint")["addr"].(string)
	return c
}

func (c *child) waitFor(msg string) map[string]any {
	c.t.Helper()
	for {
		if line := wait.For(c.t, c.log); line["msg"] == msg {
			return line
		}
	}
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		for len(c.log) > 0 {
			c.t.Log(<-c.log)
		}
		c.t.Fatal(err)
	}
}

func (c *child) exitCode() int {
	c.t.Helper()
	err := wait.For(c.t, c.done)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return 0
}

// becomes polls readiness until it says this.
func (c *child) becomes(want string) {
	c.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	wait.Until(c.t, fmt.Sprintf("ready says %q", want), func() bool {
		resp, err := client.Get("http://" + c.addr + "/readyz")
		if err != nil {
			c.t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			c.t.Fatal(err)
		}
		return strings.TrimSpace(string(b)) == want
	})
}

func TestProcessDrainsOnSIGTERM(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	r := newRunner(t, b)
	c := startChild(t, "--server", s.URL(), "--replica=w1", "--drain-timeout=10ms")
	c.becomes("ok")
	r.start(analyze(1))
	c.waitFor("start") // of the attempt
	c.signal(syscall.SIGTERM)
	if code := c.exitCode(); code != 0 {
		t.Errorf("exit %d", code)
	}
	next := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result { return found() })
	next.Replica = "w2"
	workerRun(t, next)
	if got := r.result(); got.Replica != "w2" || got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
}

func TestProcessExitsAtOnceOnSecondSignal(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	r := newRunner(t, s.Connect(t))
	c := startChild(t, "--server", s.URL(), "--replica=w1", "--drain-timeout=1h")
	c.becomes("ok")
	r.start(analyze(1))
	c.waitFor("start")
	c.signal(syscall.SIGINT)
	c.becomes("draining")
	c.signal(syscall.SIGTERM)
	if code := c.exitCode(); code != 130 {
		t.Errorf("exit %d", code)
	}
}

func TestProcessWaitsForItsServer(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	s.Stop()
	c := startChild(t, "--server", s.URL(), "--replica=w1")
	c.mentions("nats: not connected yet")
	s.Start(t)
	s.Connect(t)
	c.becomes("ok")
	s.Stop()
	c2 := startChild(t, "--server", s.URL(), "--replica=w2")
	c2.mentions("nats: not connected yet")
	for _, p := range []*child{c, c2} {
		p.signal(syscall.SIGTERM)
		if code := p.exitCode(); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}

func TestProcessAuthorisesItself(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	s, err := natsd.Start(t.Context(), natsd.Config{Dir: filepath.Join(t.TempDir(), "nats"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	b, err := bus.Connect(wait.Context(t), bus.Config{URL: s.URL(), Token: s.Token(), Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Ensure(wait.Context(t)); err != nil {
		t.Fatal(err)
	}
	right, wrong := filepath.Join(t.TempDir(), "right"), filepath.Join(t.TempDir(), "wrong")
	if err := errors.Join(os.WriteFile(right, []byte(s.Token()+"\n"), 0o600), os.WriteFile(wrong, []byte("guessed"), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, "--server", s.URL(), "--replica=w1", "--token-file", right)
	c.becomes("ok")
	c.signal(syscall.SIGTERM)
	if code := c.exitCode(); code != 0 {
		t.Errorf("exit %d", code)
	}
	c = startChild(t, "--server", strings.Replace(s.URL(), "//", "//someone:pass1@", 1), "--replica=w1", "--token-file", wrong)
	if line := c.waitFor("end"); !strings.Contains(line["error"].(string), "Authorization") || strings.Contains(line["error"].(string), "pass1") {
		t.Errorf("ended with %v", line)
	}
	if code := c.exitCode(); code != 1 {
		t.Errorf("exit %d", code)
	}
}
