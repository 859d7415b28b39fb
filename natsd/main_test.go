package natsd

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

const childEnv = "NATSD_TEST_CHILD"

// children are what the test binary does when it is started as a second process.
var children = map[string]func(dir string) error{
	"serve":    childServe,
	"find":     childFind,
	"start":    childStart,
	"readonly": childReadOnly,
	"full":     childFull,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child starts this binary again. It ends with the test at the latest.
func child(t *testing.T, name, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], dir)
	cmd.Env = append(os.Environ(), childEnv+"="+name, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func config(dir string) Config {
	return Config{Dir: dir, Purpose: "test", Logger: discard()}
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func storeIn(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "nats")
}

// streamOn connects and makes the file stream that the tests publish to.
func streamOn(ctx context.Context, e Endpoint) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(e.URL, nats.Token(e.Token), nats.NoReconnect())
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	}
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

func connect(t *testing.T, e Endpoint) jetstream.JetStream {
	t.Helper()
	nc, js, err := streamOn(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return js
}
