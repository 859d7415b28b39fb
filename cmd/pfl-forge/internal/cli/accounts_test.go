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

// guarded is a server with the accounts of auth init, on which a runner has been, and none is.
type guarded struct {
	t    *testing.T
	keys string // the folder of auth init
	url  string
	env  map[string]string
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{t: t, keys: filepath.Join(t.TempDir(), "keys")}
	for _, flag := range []string{"--no-tls-certs", "--backups"} {
		if code, said := g.forge("auth", "init", "--out", g.keys, flag); code != kit.ExitOK {
			t.Fatal(said)
		}
	}
	g.url = g.server()
	ctx := wait.Context(t)
	b, err := bus.Connect(ctx, bus.Config{
		URL: g.url, NKey: g.seed("runner"), InboxPrefix: access.Inbox("runner"), Replicas: 1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	return g
}

// server starts an empty one with these accounts.
func (g *guarded) server() (url string) {
	g.t.Helper()
	return bustest.StartConf(g.t, filepath.Join(g.keys, "auth.conf"))
}

// seed returns the file of an account's key.
func (g *guarded) seed(account string) string { return filepath.Join(g.keys, account+".nk") }

// forge runs a command, and returns all that it prints.
func (g *guarded) forge(args ...string) (code kit.Exit, said string) {
	var text bytes.Buffer
	code = kit.Exit(Main(args, strings.NewReader(""), &text, &text, func(name string) string { return g.env[name] }))
	return code, text.String()
}

// TestNoRunnerForAnAccount: for an account of auth init a runner reads. Where
// none is up, a command that reads says so and asks for nothing, also one that
// reads before it asks; what is asked for without reading is stored.
func TestNoRunnerForAnAccount(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	account := []string{"--server", g.url, "--nkey", g.seed("operator"), "--project", "shop", "-C", t.TempDir()}
	for _, args := range [][]string{
		{"status"}, {"inbox"}, {"run"}, {"create", "one", "--title", "One"}, {"pause", "one"}, {"cancel", "one"},
	} {
		code, said := g.forge(append(account, args...)...)
		told := strings.Contains(said, "no runner is up: start forge-runner with this server")
		if code != kit.ExitError || !told || strings.Contains(said, "accepted") {
			t.Errorf("%v: exit code %d, said %q", args, code, said)
		}
	}
	for _, args := range [][]string{{"approve", "one"}, {"pause", "--all"}} {
		code, said := g.forge(append(account, args...)...)
		if code != kit.ExitOK || !strings.Contains(said, "accepted; no runner is up: start forge-runner with this server") {
			t.Errorf("%v: exit code %d, said %q", args, code, said)
		}
	}
}

// TestBackupsByTheirAccount: the commands of the operators' guide copy a server and
// fill an empty one, whoever the environment says that the person is who calls them.
func TestBackupsByTheirAccount(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	for _, person := range []string{"", "ada"} {
		g.env = map[string]string{"FORGE_PERSON": person}
		folder := filepath.Join(t.TempDir(), "monday")
		if code, said := g.forge("backup", "--server", g.url, "--nkey", g.seed("backup"), folder); code != kit.ExitOK || !strings.Contains(said, folder+": ") {
			t.Fatalf("%q: exit code %d, said %q", person, code, said)
		}
		code, said := g.forge("restore", "--server", g.server(), "--nkey", g.seed("backup"), folder)
		if code != kit.ExitOK || !strings.Contains(said, "0 journals") {
			t.Errorf("%q: exit code %d, said %q", person, code, said)
		}
	}
}
