package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// guarded is a cluster with the credentials that auth init makes, and TLS.
type guarded struct {
	*cluster

	keys string // the folder of auth init
}

// newGuarded starts a cluster whose server lets in nobody else.
func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{cluster: prepareCluster(t, appending)}
	g.keys = filepath.Join(g.dir, "keys")
	g.init()
	g.authorised = func(program string) []string {
		account := program
		if program == "pfl-forge" {
			account = "operator"
		}
		return []string{"--nkey", g.seed(account), "--tls-ca", filepath.Join(g.keys, "ca.crt")}
	}
	g.run(fmt.Sprintf("tls { cert_file: %q, key_file: %q }\ninclude ./keys/auth.conf", filepath.Join(g.keys, "tls.crt"), filepath.Join(g.keys, "tls.key")))
	return g
}

// init runs auth init, and reloads the server if it runs.
func (g *guarded) init(args ...string) {
	g.t.Helper()
	cmd := exec.CommandContext(g.t.Context(), filepath.Join(bin, "pfl-forge"), append([]string{"auth", "init", "--out", g.keys}, args...)...)
	if got := launch(g.t, cmd).finish(); got.code != 0 {
		g.t.Fatalf("auth init %v: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	if len(g.procs) == 0 {
		return
	}
	server := g.procs[0]
	reloads := func() int { return strings.Count(g.log(server), "Reloaded server configuration") }
	before := reloads()
	if err := server.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		g.t.Fatal(err)
	}
	wait.Until(g.t, "the server has read its configuration again", func() bool { return reloads() > before })
}

func (g *guarded) seed(account string) string { return filepath.Join(g.keys, account+".nk") }

// log returns everything that a process has logged.
func (g *guarded) log(p *process) string {
	g.t.Helper()
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}

// violation matches the server's log lines about what an account may not do.
var violation = regexp.MustCompile(`(?i).*(violation|authentication error|not allowed).*`)

// refusals returns what the server has refused.
func (g *guarded) refusals() []string { return violation.FindAllString(g.log(g.procs[0]), -1) }

// connect returns a plain connection of an account, as any client could make it.
func (g *guarded) connect(account string, options ...nats.Option) (*nats.Conn, error) {
	g.t.Helper()
	key, err := nats.NkeyOptionFromSeed(g.seed(account))
	if err != nil {
		g.t.Fatal(err)
	}
	nc, err := nats.Connect(g.url, append(options, key, nats.RootCAs(filepath.Join(g.keys, "ca.crt")), nats.CustomInboxPrefix("_INBOX_"+account))...)
	if err == nil {
		g.t.Cleanup(nc.Close)
	}
	return nc, err
}

// TestGuardedCluster runs the whole product with the permissions and certificates that
// auth init makes: a person and a system ask for changes, all are merged, and nothing that
// a service, the person or the system does is refused.
func TestGuardedCluster(t *testing.T) {
	g := newGuarded(t)
	wait.Until(t, "all services are seen", func() bool {
		got := g.forge("doctor")
		return got.code == 0 && strings.Contains(got.stdout, "6 replicas of 5 services")
	})
	lines := g.append(2)
	nc, err := g.connect("submitter")
	if err != nil {
		t.Fatal(err)
	}
	answer, err := nc.RequestWithContext(wait.Context(t), "forge.api."+project+".from.submitter.submit",
		[]byte(`{"title": "Append far", "body": "Please.", "recipe": "append", "with": {"LINE": "far"}, "origin": {"event_id": "1"}}`))
	var accepted struct{ Intent, Result string }
	if err != nil || json.Unmarshal(answer.Data, &accepted) != nil || accepted.Result != "new" {
		t.Fatalf("submitted: %s, %v", answer.Data, err)
	}
	wait.Until(t, "a person approves what the system wants", func() bool { return g.forge("approve", accepted.Intent).code == 0 })
	if got := g.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, args := range [][]string{
		{"status"}, {"inbox"}, {"history"}, {"costs"}, {"logs", "append-00"}, {"show", "append-00"}, {"doctor"}, {"clean"},
		{"pause", "--all"}, {"resume", "--all"},
	} {
		if got := g.forge(args...); got.code != 0 {
			t.Errorf("%v: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
	}
	r := g.clone()
	checkAppended(t, r, r.read("log.txt"), append(lines, "far"))
	if refused := g.refusals(); len(refused) > 0 {
		t.Errorf("the server refused what is needed:\n%s", strings.Join(refused, "\n"))
	}
	g.noSeeds()
}

// noSeeds checks that no process has logged a seed.
func (g *guarded) noSeeds() {
	g.t.Helper()
	files, err := filepath.Glob(g.seed("*"))
	if err != nil || len(files) < 7 {
		g.t.Fatalf("seeds: %v, %v", files, err)
	}
	for _, file := range files {
		seed, err := os.ReadFile(file)
		if err != nil {
			g.t.Fatal(err)
		}
		for _, p := range g.procs {
			if strings.Contains(g.log(p), strings.TrimSpace(string(seed))) {
				g.t.Errorf("%s has logged %s", p.name, filepath.Base(file))
			}
		}
	}
}

// TestRenewedKeys renews every key and the certificate while work is done, and has the
// server read them: services go on in the same processes, and each of the former keys is
// refused.
func TestRenewedKeys(t *testing.T) {
	g := newGuarded(t)
	lines := g.append(2)
	former := filepath.Join(g.dir, "former")
	if err := os.CopyFS(former, os.DirFS(g.keys)); err != nil {
		t.Fatal(err)
	}
	args := []string{"--role", "server"}
	for _, account := range accounts {
		args = append(args, "--role", account)
	}
	g.init(args...)
	if got := g.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	r := g.clone()
	checkAppended(t, r, r.read("log.txt"), lines)
	for _, p := range g.procs {
		select {
		case <-p.gone:
			t.Errorf("%s has ended", p.name)
		default:
		}
	}
	renewed := g.keys
	for _, account := range accounts {
		g.keys = renewed
		if _, err := g.connect(account); err != nil {
			t.Errorf("%s with the new key: %v", account, err)
		}
		g.keys = former
		if _, err := g.connect(account); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s with the former key: %v", account, err)
		}
	}
	g.keys = renewed
	g.noSeeds()
}

// accounts are those that auth init makes without being told.
var accounts = []string{"runner", "analyzer", "implementer", "reviewer", "reflector", "operator", "submitter"}
