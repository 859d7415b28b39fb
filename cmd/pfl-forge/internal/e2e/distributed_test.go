package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testport"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// cluster is a distributed set-up: a plain nats-server with the permissions and the
// certificate that auth init makes, the five services with two implementers, and a bare
// repository as origin. No test may need more than these permissions.
type cluster struct {
	t      testing.TB
	dir    string
	origin string
	url    string
	procs  []*process
	keys   string   // the folder of auth init
	env    []string // variables of the services
	// own are variables of single replicas.
	own map[string][]string
	// via is where the services connect to; empty if that is url.
	via string
	// servers is how many NATS servers there are; 0 for one without a cluster.
	servers int
	// attacked says that the server has to refuse something.
	attacked bool
}

// process is one program of the cluster, which can be killed and started again.
type process struct {
	name string
	args []string
	env  []string // beside those of all
	cmd  *exec.Cmd
	log  *os.File
	gone chan struct{}
}

const project = "web"

// newCluster starts everything, with a repository that has these files, and with variables
// for the services.
func newCluster(t testing.TB, files map[string]string, env ...string) *cluster {
	t.Helper()
	c := prepareCluster(t, files, env...)
	c.run()
	return c
}

// prepareCluster returns a cluster of which nothing runs yet.
func prepareCluster(t testing.TB, files map[string]string, env ...string) *cluster {
	t.Helper()
	seed := newRepo(t, files)
	c := &cluster{t: t, dir: testdir.New(t), env: env}
	c.origin = filepath.Join(c.dir, "origin.git")
	seed.git("clone", "-q", "--bare", seed.dir, c.origin)
	c.url = fmt.Sprintf("nats://127.0.0.1:%d", testport.Free(t))
	c.keys = filepath.Join(c.dir, "keys")
	c.initKeys()
	return c
}

// authorised returns the settings by which a service, or a person with pfl-forge, connects.
func (c *cluster) authorised(program string) []string {
	account := program
	if program == "pfl-forge" {
		account = "operator"
	}
	return []string{"--nkey", c.seed(account), "--tls-ca", filepath.Join(c.keys, "ca.crt")}
}

// run starts everything.
func (c *cluster) run() {
	t := c.t
	t.Helper()
	servers := c.configureServers()
	c.procs = append(c.procs, servers[0])
	address := c.url
	if c.via != "" {
		address = c.via
	}
	for _, s := range []struct{ program, replica string }{
		{"runner", "runner-1"},
		{"analyzer", "analyzer-1"},
		{"implementer", "implementer-1"},
		{"implementer", "implementer-2"},
		{"reviewer", "reviewer-1"},
		{"reflector", "reflector-1"},
	} {
		c.procs = append(c.procs, &process{name: s.program, env: c.own[s.replica], args: append([]string{
			"--server", address, "--project", project + "=" + c.origin,
			"--replica", s.replica, "--state-dir", filepath.Join(c.dir, "state", s.replica), "--listen", "127.0.0.1:0",
		}, c.authorised(s.program)...)})
	}
	c.procs = append(c.procs, servers[1:]...)
	for i, p := range c.procs {
		log, err := os.Create(filepath.Join(c.dir, fmt.Sprintf("%d-%s.log", i, p.name)))
		if err != nil {
			t.Fatal(err)
		}
		p.log = log
		c.start(p)
	}
	t.Cleanup(func() {
		if t.Failed() {
			c.explain()
		}
		for _, p := range c.procs {
			p.kill()
			_ = p.log.Close()
		}
		if refused := c.refusals(); len(refused) > 0 && !c.attacked {
			t.Errorf("the server refused what is needed:\n%s", strings.Join(refused, "\n"))
		}
		for _, p := range c.procs {
			if t.Failed() {
				content, _ := os.ReadFile(p.log.Name())
				t.Logf("%s:\n%s", filepath.Base(p.log.Name()), tail(content, 3000))
			}
		}
	})
	wait.Until(t, "the cluster is up", func() bool { return c.forge("status").code == 0 })
}

// explain prints what a test that failed leaves, while the services that it did not end still run.
func (c *cluster) explain() {
	c.t.Helper()
	for _, args := range [][]string{{"status"}, {"doctor"}} {
		ctx, cancel := wait.Bounded()
		out, err := c.command(ctx, bin, args...).CombinedOutput()
		cancel()
		c.t.Logf("pfl-forge %s: %v\n%s", args[0], err, out)
	}
}

// configureServers returns the NATS servers, and writes what they read at their start.
func (c *cluster) configureServers() (list []*process) {
	c.t.Helper()
	var routes []string
	for range c.servers {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", testport.Free(c.t)))
	}
	urls := []string{c.url}
	for len(urls) < c.servers {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", testport.Free(c.t)))
	}
	for i, url := range urls {
		name := fmt.Sprintf("nats-%d", i)
		conf := fmt.Sprintf("listen: %q\nserver_name: %s\njetstream { store_dir: %q, sync_interval: always, max_file_store: 1TB }\n"+
			"tls { cert_file: %q, key_file: %q }\ninclude ./auth.conf\n",
			strings.TrimPrefix(url, "nats://"), name, filepath.Join(c.dir, name),
			filepath.Join(c.keys, "tls.crt"), filepath.Join(c.keys, "tls.key"))
		if c.servers > 0 {
			conf += fmt.Sprintf("cluster { name: forge, listen: %q, routes: [%s] }\n", strings.TrimPrefix(routes[i], "nats://"), strings.Join(routes, ", "))
		}
		path := filepath.Join(c.dir, name+".conf")
		write(c.t, path, conf)
		list = append(list, &process{name: "nats-server", args: []string{"-c", path}})
	}
	c.url = strings.Join(urls, ",")
	return list
}

func (c *cluster) start(p *process) {
	c.t.Helper()
	program := p.name
	if !filepath.IsAbs(program) { // of another version otherwise
		program = filepath.Join(bin, p.name)
	}
	p.cmd = exec.Command(program, p.args...)
	p.cmd.Env = slices.Concat(os.Environ(), c.env, p.env)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	gone := make(chan struct{})
	p.gone = gone
	go func(cmd *exec.Cmd) {
		_ = cmd.Wait()
		close(gone)
	}(p.cmd)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// forge runs pfl-forge against the cluster, from nowhere near a repository.
func (c *cluster) forge(args ...string) result {
	c.t.Helper()
	return c.forgeOf(bin, args...)
}

// forgeOf runs the pfl-forge of a folder.
func (c *cluster) forgeOf(dir string, args ...string) result {
	c.t.Helper()
	cmd := c.command(c.t.Context(), dir, args...)
	cmd.Dir = c.t.TempDir()
	return launch(c.t, cmd).finish()
}

// command returns a command of the pfl-forge of a folder against the cluster.
func (c *cluster) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	all := append(c.authorised("pfl-forge"), "--server", c.url, "--project", project)
	return exec.CommandContext(ctx, filepath.Join(dir, "pfl-forge"), append(all, args...)...)
}

// append asks for n intents that each append a line.
func (c *cluster) append(n int) []string {
	c.t.Helper()
	lines := []string{"begin"}
	for i := range n {
		line := fmt.Sprintf("line-%02d", i)
		lines = append(lines, line)
		got := c.forge("create", fmt.Sprintf("append-%02d", i), "--title", "Append "+line, "--body", "Please.", "--recipe", "append", "--with", "LINE="+line)
		if got.code != 0 {
			c.t.Fatalf("create: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
	}
	return lines
}

// listed is an intent in the output of status.
type listed struct {
	ID, Status, Waiting string
}

// intents returns all intents; none where the server is away just now.
func (c *cluster) intents() []listed {
	c.t.Helper()
	got := c.forge("status", "--output", "json")
	var status struct{ Intents []listed }
	if got.code != 0 {
		return nil
	}
	if err := json.Unmarshal([]byte(got.stdout), &status); err != nil {
		c.t.Fatalf("status: %v\n%s", err, got.stdout)
	}
	return status.Intents
}

// done returns how many intents are done.
func (c *cluster) done() int {
	c.t.Helper()
	n := 0
	for _, i := range c.intents() {
		if i.Status == "done" {
			n++
		}
	}
	return n
}

func (c *cluster) clone() *repo {
	c.t.Helper()
	r := &repo{t: c.t, dir: filepath.Join(c.t.TempDir(), "clone")}
	if out, err := exec.CommandContext(c.t.Context(), "git", "clone", "-q", c.origin, r.dir).CombinedOutput(); err != nil {
		c.t.Fatalf("git clone: %v\n%s", err, out)
	}
	return r
}

// TestDistributed runs the services as processes of their own.
func TestDistributed(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, appending)
	wait.Until(t, "all services are seen", func() bool {
		got := c.forge("doctor")
		return got.code == 0 && strings.Contains(got.stdout, "6 replicas of 5 services")
	})
	c.protect()
	lines := c.append(testsize.Of(2, 6))
	if got := c.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	r := c.clone()
	checkAppended(t, r, r.read("log.txt"), lines)
	c.proven(len(lines) - 1)
}

// TestKilledServices kills random processes of the cluster -9, the server among
// them, while intents are worked on.
func TestKilledServices(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	c := newCluster(t, appending)
	c.protect()
	intents, most := 20, 50
	lines := c.append(intents)
	rng := rand.New(rand.NewPCG(3, 4))
	kills := 0
	for ; c.done() < intents && kills < most; kills++ {
		p := c.procs[rng.IntN(len(c.procs))]
		p.kill()
		c.start(p)
		select { // let the others get somewhere
		case <-wait.Moment(rng, 0, 600*time.Millisecond):
		case <-p.gone:
			t.Logf("%s did not start", p.name)
			c.start(p)
		}
	}
	t.Logf("%d kills", kills)
	if got := c.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	r := c.clone()
	checkAppended(t, r, r.read("log.txt"), lines)
	c.proven(len(lines) - 1)
	for _, p := range c.procs {
		p.kill()
	}
	c.nothingIsLeft()
	fsck := exec.CommandContext(t.Context(), "git", "-C", c.origin, "fsck", "--no-dangling", "--no-progress")
	if out, err := fsck.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("git fsck: %v\n%s", err, out)
	}
}

// nothingIsLeft waits until every process of the cluster is gone, also those that wait
// for the end of a service to tidy up after it.
func (c *cluster) nothingIsLeft() {
	c.t.Helper()
	wait.Until(c.t, "no process is left", func() bool {
		list := processesIn(c.t, c.dir)
		return len(list) == 0
	})
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func tail(b []byte, n int) []byte {
	if len(b) > n {
		return b[len(b)-n:]
	}
	return b
}
