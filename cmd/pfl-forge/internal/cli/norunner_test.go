package cli

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/access"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// Where no runner has ever been, every command says so at once; none waits.
func TestNoRunner(t *testing.T) {
	server := bustest.StartServer(t)
	for _, args := range [][]string{
		{"run"}, {"create", "--title", "One"}, {"status"}, {"approve", "one"}, {"clean"}, {"doctor"},
	} {
		var out, errs bytes.Buffer
		args = append([]string{"--server", server.URL(), "--project", "shop"}, args...)
		code := Main(args, strings.NewReader(""), &out, &errs, func(string) string { return "" })
		if said := out.String() + errs.String(); code != int(kit.ExitError) || !strings.Contains(said, "no runner has been here yet: start forge-runner") {
			t.Errorf("%v: exit code %d, said %q", args[4:], code, said)
		}
	}
}

// TestNoRunnerForAnAccount: for an account of auth init a runner reads. Where none is up, a command that reads says so and asks for nothing,
// also one that reads before it asks; what is asked for without reading is stored.
func TestNoRunnerForAnAccount(t *testing.T) {
	t.Parallel()
	ctx := wait.Context(t)
	keys := filepath.Join(t.TempDir(), "keys")
	forge := func(args ...string) (code kit.Exit, said string) {
		var text bytes.Buffer
		code = kit.Exit(Main(args, strings.NewReader(""), &text, &text, func(string) string { return "" }))
		return code, text.String()
	}
	if code, said := forge("auth", "init", "--out", keys, "--no-tls-certs"); code != kit.ExitOK {
		t.Fatal(said)
	}
	url := bustest.StartConf(t, filepath.Join(keys, "auth.conf"))
	b, err := bus.Connect(ctx, bus.Config{
		URL: url, NKey: filepath.Join(keys, "runner.nk"), InboxPrefix: access.Inbox("runner"), Replicas: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Ensure(ctx); err != nil { // as a runner once did
		t.Fatal(err)
	}
	b.Close()
	account := []string{"--server", url, "--nkey", filepath.Join(keys, "operator.nk"), "--project", "shop", "-C", t.TempDir()}
	for _, args := range [][]string{
		{"status"}, {"inbox"}, {"run"}, {"create", "one", "--title", "One"}, {"pause", "one"}, {"cancel", "one"}, {"approve", "one"},
	} {
		code, said := forge(append(account, args...)...)
		if code != kit.ExitError || !strings.Contains(said, "no runner is up: start forge-runner with this server") || strings.Contains(said, "accepted") {
			t.Errorf("%v: exit code %d, said %q", args, code, said)
		}
	}
	if code, said := forge(append(account, "pause", "--all")...); code != kit.ExitOK || !strings.Contains(said, "accepted; no runner is up: start forge-runner") {
		t.Errorf("pause --all: exit code %d, said %q", code, said)
	}
}
