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
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// initKeys runs auth init, and reloads the server if it runs. The tests have an account of
// their own there, which may do everything.
func (c *cluster) initKeys(args ...string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(bin, "pfl-forge"), append([]string{"auth", "init", "--out", c.keys}, args...)...)
	if got := launch(c.t, cmd).finish(); got.code != 0 {
		c.t.Fatalf("auth init %v: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	conf, err := os.ReadFile(filepath.Join(c.keys, "auth.conf"))
	if err != nil {
		c.t.Fatal(err)
	}
	write(c.t, filepath.Join(c.dir, "auth.conf"), strings.Replace(string(conf), "users: [", "users: [ { user: admin, password: secret }", 1))
	if len(c.procs) > 0 {
		c.reload()
	}
}

// reload has the server read its configuration again.
func (c *cluster) reload() {
	c.t.Helper()
	server := c.procs[0]
	reloads := func() int { return strings.Count(c.log(server), "Reloaded server configuration") }
	before := reloads()
	if err := server.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		c.t.Fatal(err)
	}
	wait.Until(c.t, "the server has read its configuration again", func() bool { return reloads() > before })
}

func (c *cluster) seed(account string) string { return filepath.Join(c.keys, account+".nk") }

// administrator returns how a test connects that does what no account may.
func (c *cluster) administrator() bus.Config {
	return bus.Config{
		URL: strings.Replace(c.url, "://", "://admin:secret@", 1), TLS: bus.TLS{CA: filepath.Join(c.keys, "ca.crt")}, Name: c.t.Name(),
	}
}

// log returns everything that a process has logged.
func (c *cluster) log(p *process) string {
	c.t.Helper()
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// violation matches the server's log lines about a subject that an account may not use.
var violation = regexp.MustCompile(`.*(Publish|Subscription) Violation.*`)

// refusals returns what the server has refused.
func (c *cluster) refusals() []string { return violation.FindAllString(c.log(c.procs[0]), -1) }

// connect returns a plain connection of an account, as any client could make it.
func (c *cluster) connect(account string, options ...nats.Option) (*nats.Conn, error) {
	c.t.Helper()
	key, err := nats.NkeyOptionFromSeed(c.seed(account))
	if err != nil {
		c.t.Fatal(err)
	}
	nc, err := nats.Connect(c.url, append(options, key, nats.RootCAs(filepath.Join(c.keys, "ca.crt")), nats.CustomInboxPrefix("_INBOX_"+account))...)
	if err == nil {
		c.t.Cleanup(nc.Close)
	}
	return nc, err
}

// TestGuardedCluster runs the whole product with the permissions and certificates that
// auth init makes: a person and a system ask for changes, all are merged, and nothing that
// a service, the person or the system does is refused. Metrics and traces are on, and lines of
// logs say what they are about.
func TestGuardedCluster(t *testing.T) {
	t.Parallel()
	sent := newCollector(t)
	g := newCluster(t, appending, "OTEL_EXPORTER_OTLP_ENDPOINT="+sent.url, "OTEL_METRIC_EXPORT_INTERVAL=200", "OTEL_BSP_SCHEDULE_DELAY=200",
		"FORGE_LOG_LEVEL=debug")
	wait.Until(t, "all services are seen", func() bool {
		got := g.forge("doctor")
		return got.code == 0 && strings.Contains(got.stdout, "6 replicas of 5 services")
	})
	g.protect()
	lines := g.append(2)
	nc, err := g.connect("submitter")
	if err != nil {
		t.Fatal(err)
	}
	wish := nats.NewMsg("forge.api." + project + ".from.submitter.submit")
	wish.Data = []byte(`{"title": "Append far", "body": "Please.", "recipe": "append", "with": {"LINE": "far"}, "origin": {"event_id": "1"}}`)
	key, err := bus.SigningKey(g.seed("submitter"), "submitter")()
	if err != nil {
		t.Fatal(err)
	}
	proof, err := signed.Sign(key, &signed.Message{Subject: wish.Subject, Payload: wish.Data}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	wish.Header.Set(signed.Header, proof.String())
	answer, err := nc.RequestMsgWithContext(wait.Context(t), wish)
	var accepted struct{ Intent, Result string }
	if err != nil || json.Unmarshal(answer.Data, &accepted) != nil || accepted.Result != "new" {
		t.Fatalf("submitted: %s, %v", answer.Data, err)
	}
	wait.Until(t, "a person approves what the system wants", func() bool { return g.forge("approve", accepted.Intent).code == 0 })
	if got := g.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	for _, args := range [][]string{
		{"status"},
		{"inbox"},
		{"history"},
		{"costs"},
		{"logs", "append-00"},
		{"show", "append-00"},
		{"doctor"},
		{"clean"},
		{"pause", "--all"},
		{"resume", "--all"},
	} {
		if got := g.forge(args...); got.code != 0 {
			t.Errorf("%v: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
		}
	}
	if got := g.forge("audit-log", "export"); strings.Count(got.stdout, `"via":"operator"`) != 5 || strings.Count(got.stdout, `"via":"runner"`) != 1 ||
		!strings.Contains(got.stdout, `"via":"reviewer"`) { // two requests, the approval and the pauses of the project
		t.Errorf("export: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := g.forge("audit-log", "verify", "--trusted-keys", filepath.Join(g.keys, "allowed_signers")); got.code != 0 ||
		!strings.Contains(got.stdout, "1 in another form; 0 are unsigned, 0 not proven") {
		t.Errorf("verify: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	// To audit takes the right to read, and no other: the server would log what it refuses.
	g.addReader("bob")
	for _, args := range [][]string{{"audit-log", "verify"}, {"audit-log", "export"}} {
		mine, theirs := g.forge(args...), g.as("bob", args...)
		if theirs.code != 0 || theirs.stdout != mine.stdout {
			t.Errorf("%v of a reader: exit code %d\n%s%s\nwant\n%s", args, theirs.code, theirs.stdout, theirs.stderr, mine.stdout)
		}
	}
	r := g.clone()
	checkAppended(t, r, r.read("log.txt"), append(lines, "far"))
	g.proven(len(lines)) // the line that was there at first is none of them, and the system's is
	trace := sent.complete()
	for _, args := range [][]string{{"show", "append-00", "-o", "json"}, {"history", "append-00", "-o", "json"}} {
		var d struct {
			TraceID string `json:"trace_id"`
		}
		if got := g.forge(args...); json.Unmarshal([]byte(got.stdout), &d) != nil || d.TraceID != trace {
			t.Errorf("%v: trace %q, want %q\n%s", args, d.TraceID, trace, got.stdout)
		}
	}
	for _, p := range g.procs {
		if strings.Contains(g.log(p), "the state of the installation cannot be read") {
			t.Errorf("%s shows no state: its log says why", p.name)
		}
	}
	g.noSeeds()
	// An intent has 5 attempts, each with a start and an end, and a decision on its result.
	if about := g.checkLines("append-00", "append-01", accepted.Intent); about < 3*5*3 {
		t.Errorf("%d lines are about commands", about)
	}
	wish.Header.Del(signed.Header)
	if refused, err := nc.RequestMsgWithContext(wait.Context(t), wish); err != nil || !strings.Contains(string(refused.Data), "it is not signed") {
		t.Errorf("without a signature: %s, %v", refused.Data, err)
	}
	if got := g.forge("doctor"); !strings.Contains(got.stdout, "it is not signed: nothing proves that it is from submitter") {
		t.Errorf("doctor: exit code %d\n%s", got.code, got.stdout)
	}
}

// addReader adds an account of a person who may read, and neither clean, which
// --no-clean leaves out, nor ask or decide, which no option does.
func (c *cluster) addReader(name string) {
	c.t.Helper()
	c.initKeys("--person", name, "--projects", project, "--no-clean")
	path := filepath.Join(c.dir, "auth.conf")
	conf, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	asks := fmt.Sprintf("%q,", "forge.intent."+project+".by."+name+".*")
	if strings.Count(string(conf), asks) != 1 || strings.Contains(string(conf), "by."+name+".clean") {
		c.t.Fatalf("%s may do something else than what this test knows", name)
	}
	write(c.t, path, strings.Replace(string(conf), asks, "", 1))
	c.reload()
}

// as runs pfl-forge against the cluster with the account of another person.
func (c *cluster) as(account string, args ...string) result {
	c.t.Helper()
	as := []string{"--person", account, "--nkey", c.seed(account), "--tls-ca", filepath.Join(c.keys, "ca.crt"), "--server", c.url, "--project", project}
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(bin, "pfl-forge"), append(as, args...)...)
	cmd.Dir = c.t.TempDir()
	return launch(c.t, cmd).finish()
}

// noSeeds checks that no process has logged a seed.
func (c *cluster) noSeeds() {
	c.t.Helper()
	files, err := filepath.Glob(c.seed("*"))
	if err != nil || len(files) < 7 {
		c.t.Fatalf("seeds: %v, %v", files, err)
	}
	for _, file := range files {
		seed, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, p := range c.procs {
			if strings.Contains(c.log(p), strings.TrimSpace(string(seed))) {
				c.t.Errorf("%s has logged %s", p.name, filepath.Base(file))
			}
		}
	}
}

// TestRenewedKeys renews every key and the certificate while work is done, and has the
// server read them: services go on in the same processes, and each of the former keys is
// refused.
func TestRenewedKeys(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	g := newCluster(t, appending)
	g.protect()
	lines := g.append(2)
	former := filepath.Join(g.dir, "former")
	if err := os.CopyFS(former, os.DirFS(g.keys)); err != nil {
		t.Fatal(err)
	}
	args := []string{"--role", "server"}
	for _, account := range accounts {
		args = append(args, "--role", account)
	}
	g.initKeys(args...)
	if got := g.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	r := g.clone()
	checkAppended(t, r, r.read("log.txt"), lines)
	g.proven(len(lines) - 1)
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
