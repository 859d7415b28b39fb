package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// get returns what the health endpoint answers.
func (c *child) get(path string) (int, string) {
	c.t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + c.addr + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

// mentions polls readiness until its reason mentions a text.
func (c *child) mentions(text string) {
	c.t.Helper()
	wait.Until(c.t, fmt.Sprintf("ready mentions %q", text), func() bool {
		code, body := c.get("/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, text)
	})
}

// TestServiceWaitsForNATS starts a service before its server, in each way in which that is
// not there, and then the server.
func TestServiceWaitsForNATS(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cause string
		// without prepares a stopped server, and returns what mends it.
		without func(t *testing.T, s *bustest.Server) (mend func())
	}{
		"connection refused":  {"connection refused", func(*testing.T, *bustest.Server) func() { return func() {} }},
		"accepted and closed": {"EOF", occupied(bustest.Hangup)},
		"reset":               {"connection reset by peer", occupied(bustest.Reset)},
		"garbage":             {"INFO not received", occupied(bustest.Garbage)},
		"silence":             {"i/o timeout", occupied(bustest.Silence)},
		"no JetStream": {"JetStream", func(t *testing.T, s *bustest.Server) func() {
			t.Helper()
			s.StartWithoutJetStream(t)
			return s.Stop
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := bustest.StartServer(t)
			s.Stop()
			mend := tt.without(t, s)
			c := startChild(t, "--server", strings.Replace(s.URL(), "//", "//someone:pass1@", 1), "--replica=w1")
			c.mentions("nats: not connected yet: ")
			c.mentions(tt.cause)
			line := c.waitFor("NATS is not there yet; waiting")
			if line["server"] != strings.Replace(s.URL(), "//", "//xxxxx@", 1) || line["error"] == "" {
				t.Errorf("the first line is %v", line)
			}
			if code, body := c.get("/livez"); code != http.StatusOK || body != "ok" {
				t.Errorf("/livez: %d %q", code, body)
			}
			mend()
			s.Start(t)
			s.Connect(t)
			c.becomes("ok")
			c.waitFor("NATS is there")
			c.signal(syscall.SIGTERM)
			if code := c.exitCode(); code != 0 {
				t.Errorf("exit %d", code)
			}
		})
	}
}

// occupied has something else stand in the place of a stopped server.
func occupied(answer bustest.Answer) func(*testing.T, *bustest.Server) (mend func()) {
	return func(t *testing.T, s *bustest.Server) func() {
		t.Helper()
		return s.Occupy(t, answer).Leave
	}
}

// TestServiceWaitsForAName checks that a service waits for the name of its server, and ends
// when it is told to while it waits.
func TestServiceWaitsForAName(t *testing.T) {
	t.Parallel()
	c := startChild(t, "--server", "nats://nats.invalid:4222", "--replica=w1")
	c.mentions("nats.invalid")
	s := bustest.StartServer(t)
	s.Stop()
	asked := s.Occupy(t, bustest.Silence).Asked()
	silent := startChild(t, "--server", s.URL(), "--replica=w2")
	wait.For(t, asked)
	for _, waiting := range []*child{c, silent} {
		waiting.signal(syscall.SIGTERM)
		if code := waiting.exitCode(); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}

// TestServiceWaitsForTLS checks that a service that is to use TLS waits for a server that
// does not have it yet, and ends at once where the certificate is not one to trust.
func TestServiceWaitsForTLS(t *testing.T) {
	s := bustest.StartServer(t)
	authority, url := s.UseTLS(t)
	t.Run("not yet", func(t *testing.T) {
		t.Setenv("SSL_CERT_FILE", authority)
		c := startChild(t, "--server", url, "--replica=w1") // the server goes on without
		c.mentions("secure connection not available")
		s.Restart(t)
		c.mentions("stream not found") // which is heard through TLS
	})
	t.Run("not trusted", func(t *testing.T) {
		t.Setenv("SSL_CERT_FILE", "/dev/null")
		c := startChild(t, "--server", url, "--replica=w1")
		if err, _ := c.waitFor("end")["error"].(string); !strings.Contains(err, "--server (FORGE_SERVER)") || !strings.Contains(err, "certificate") {
			t.Errorf("ended with %q", err)
		}
		if code := c.exitCode(); code != 1 {
			t.Errorf("exit %d", code)
		}
	})
}

// TestServiceWaitsForItsToken checks that a server that does not know a token yet is given a while.
func TestServiceWaitsForItsToken(t *testing.T) {
	s := bustest.StartServer(t)
	s.SetToken("old")
	s.Restart(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SERVICE_TEST_PATIENCE", "1h")
	c := startChild(t, "--server", s.URL(), "--replica=w1", "--token-file", token)
	c.mentions("Authorization Violation")
	line := c.waitFor("NATS is not there yet; waiting")
	if err, _ := line["error"].(string); !strings.Contains(err, "--token-file (FORGE_TOKEN_FILE)") {
		t.Errorf("the first line is %v", line)
	}
	s.SetToken("new")
	s.Restart(t)
	c.waitFor("NATS is there")
}

// TestHeldCommandComesAgain checks that a command that cannot begin yet is neither begun nor
// failed, and comes again when it can.
func TestHeldCommandComesAgain(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	began := make(chan struct{}, 10)
	w := worker(t, b, func(context.Context, forge.Command, service.Progress) forge.Result {
		began <- struct{}{}
		return found()
	})
	var there atomic.Bool
	held := make(chan struct{}, 10)
	w.Hold = func(*forge.Command) error {
		if there.Load() {
			return nil
		}
		held <- struct{}{}
		return errors.New("the origin is away")
	}
	workerRun(t, w)
	r.start(analyze(1))
	wait.For(t, held)
	if len(began) > 0 {
		t.Error("a command that is held back began")
	}
	there.Store(true)
	if got := r.result(); got.Failure() != nil {
		t.Errorf("got %+v", got)
	}
}

// TestServiceNamesItsKeys checks that what is wrong with an nkey or a certificate ends a
// service with the name of that setting, and that with the right ones it is ready.
func TestServiceNamesItsKeys(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	authority, _ := s.UseTLS(t)
	s.Restart(t)
	other, _ := bustest.StartServer(t).UseTLS(t)
	_, seed, err := access.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "nkey")
	if err := os.WriteFile(key, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	c := startChild(t, "--server", s.URL(), "--replica=w1", "--tls-ca", authority)
	c.mentions("stream not found") // which is heard through TLS
	for want, args := range map[string][]string{
		"--tls-ca (FORGE_TLS_CA): ":  {"--tls-ca", other},
		"or --tls-ca (FORGE_TLS_CA)": {"--server", strings.Replace(s.URL(), "nats://", "tls://", 1)},
		"--nkey (FORGE_NKEY): ":      {"--tls-ca", authority, "--nkey", key},
	} {
		c := startChild(t, append([]string{"--server", s.URL(), "--replica=w1"}, args...)...)
		end, _ := c.waitFor("end")["error"].(string)
		if !strings.Contains(end, want) || strings.Contains(end, string(seed)) {
			t.Errorf("%v: ended with %q", args, end)
		}
		if code := c.exitCode(); code != 1 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
