package monitoring_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// process is a running service.
type process struct {
	name string
	addr string // of its metrics
	// outside has the address of a gateway, once it listens there.
	outside chan string
}

// launch builds a service and runs it until the test ends.
func launch(t *testing.T, bin, service, replica, server string, args ...string) process {
	t.Helper()
	program := filepath.Join(bin, service)
	if _, err := os.Stat(program); err != nil {
		build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/"+service)
		build.Dir = "../../services/" + service
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	args = append([]string{"--server", server, "--replica", replica, "--listen", "127.0.0.1:0", "--state-dir", t.TempDir(), "--drain-timeout", "1s"}, args...)
	cmd := exec.Command(program, args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addr, outside, ended := make(chan string, 1), make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg, Addr, Address, Level string }
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				continue
			}
			switch line.Msg {
			case "health endpoint":
				addr <- line.Addr
			case "serves the outside":
				outside <- line.Address
			}
			if line.Level == "ERROR" {
				t.Errorf("%s: %s", replica, lines.Text())
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", replica, err)
		}
	})
	return process{replica, wait.For(t, addr), outside}
}

// launchGateway runs a gateway that knows one token, and returns that too.
func launchGateway(t *testing.T, bin, server string) (p process, token string) {
	t.Helper()
	dir := t.TempDir()
	token = "pflt_" + rand.Text()
	for name, text := range map[string]string{
		"gateway.yaml": "listen: 127.0.0.1:0\ntokens: tokens.yaml\n",
		"tokens.yaml":  fmt.Sprintf("tokens:\n  ada: {sha256: %x, person: ada, projects: {shop: [viewer]}}\n", sha256.Sum256([]byte(token))),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return launch(t, bin, "gateway", "gateway-1", server, "--gateway="+filepath.Join(dir, "gateway.yaml")), token
}

// lists asks a gateway for the intents of the project.
func (p process) lists(t *testing.T, token string) {
	t.Helper()
	address := wait.For(t, p.outside)
	p.outside <- address
	r, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, "http://"+address+"/api/v1/projects/shop/intents", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Errorf("the gateway answers %s", resp.Status)
	}
}

// get returns what a process answers.
func (p process) get(t *testing.T, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + p.addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

var sample = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? (\S+)$`)

// scrape adds the samples of all processes, with the labels that Prometheus adds.
func scrape(t *testing.T, all []process, into map[string]string) {
	t.Helper()
	for _, p := range all {
		_, body := p.get(t, "/metrics")
		for _, m := range sample.FindAllStringSubmatch(body, -1) {
			with := fmt.Sprintf("instance=%q,job=\"forge\"", p.name)
			if m[2] != "" {
				with = m[2] + "," + with
			}
			into[m[1]+"{"+with+"}"] = m[3]
		}
	}
}

// TestRealRun runs the real services on a real server and a real repository: rules and
// dashboard are evaluated on what they expose. All is well, so no alert fires; and every panel
// has data, except those about what did not happen.
func TestRealRun(t *testing.T) {
	testsize.OnlyFull(t)
	s := bustest.StartServer(t)
	r := gittest.New(t, map[string]string{
		"pfl-forge.yaml": "verify: ['true']\nrecipes:\n  touch: {run: 'echo x > \"$FORGE_INTENT\"', check: 'true'}\n",
	})
	origin := filepath.Join(t.TempDir(), "shop.git")
	r.Git("clone", "--bare", r.Dir, origin)
	bin := t.TempDir()
	serves := "--project=shop=" + origin
	all := []process{
		launch(t, bin, "runner", "runner-1", s.URL()), launch(t, bin, "runner", "runner-2", s.URL()),
		launch(t, bin, "analyzer", "analyzer-1", s.URL(), serves), launch(t, bin, "implementer", "implementer-1", s.URL(), serves),
		launch(t, bin, "reviewer", "reviewer-1", s.URL(), serves), launch(t, bin, "reflector", "reflector-1", s.URL(), serves),
	}
	outside, token := launchGateway(t, bin, s.URL())
	all = append(all, outside)
	for _, p := range all {
		wait.Until(t, p.name+" is ready", func() bool { code, _ := p.get(t, "/readyz"); return code == http.StatusOK })
	}
	before := map[string]string{}
	scrape(t, all, before)
	b := s.Connect(t)
	const n = 5
	for i := range n {
		outside.lists(t, token)
		submit(t.Context(), t, b.Submissions, forge.IntentID(fmt.Sprintf("intent-%d", i)))
	}
	after := map[string]string{}
	done := `forge_intents{forge_intent_status="done",forge_project="shop",instance="%s",job="forge"}`
	wait.Until(t, "both runners show that all is done, and reflected on", func() bool {
		clear(after)
		scrape(t, all, after)
		for series, value := range after {
			if (strings.HasPrefix(series, "forge_step_queue_depth{") || strings.HasPrefix(series, "forge_step_active{")) && value != "0" {
				return false
			}
		}
		return after[fmt.Sprintf(done, "runner-1")] == fmt.Sprint(n) && after[fmt.Sprintf(done, "runner-2")] == fmt.Sprint(n)
	})
	// Ten minutes: five before the work, and five after it.
	var load []string
	for series, value := range after {
		first, ok := before[series]
		if !ok {
			first = "0"
			if strings.HasPrefix(series, "forge_") && !strings.Contains(series, "_total{") && !strings.Contains(series, "_seconds_") {
				first = value
			}
		}
		load = append(load, series+strings.Repeat(" "+first, 6)+strings.Repeat(" "+value, 5))
	}
	sort.Strings(load)
	world := promqltest.LoadedStorage(t, "load 1m\n  "+strings.Join(load, "\n  ")+"\n")
	for _, rule := range alerts(t) {
		if got := firing(t, world, rule, 10); len(got) > 0 {
			t.Errorf("%s fires: %q", rule.Alert, got)
		}
	}
	for _, step := range forge.Steps() {
		if got := commands(t, world, fmt.Sprintf("forge_step=%q", step), 8*time.Minute); len(got) != 1 || got[0].F != 0 {
			t.Errorf("autoscalers are told %v of step %s", got, step)
		}
	}
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	notHappened := map[string]bool{
		"Waits for a person": true, "Why attempts fail": true, "Dollars in an hour": true, "Tokens in an hour": true,
		"Start of pods, p95": true, "Pods lost in an hour": true, "Pods refused in an hour": true, "Reads refused in an hour": true,
		"Submissions over quota": true,
	}
	for title, query := range queries(t) {
		q, err := engine.NewInstantQuery(t.Context(), world, nil, query, time.Unix(0, 0).Add(8*time.Minute))
		if err != nil {
			t.Fatal(title, err)
		}
		res := q.Exec(t.Context())
		vector, err := res.Vector()
		if err != nil || (len(vector) == 0) != notHappened[title] && title != "Redeliveries and lost leases" { // that may happen
			t.Errorf("%s: %v, %v", title, vector, err)
		}
		if title == "Merges in an hour" && (len(vector) != 1 || vector[0].F < n-1) {
			t.Errorf("%s: %v", title, vector)
		}
		q.Close()
	}
}

// submit asks for an intent that a recipe carries out.
func submit(ctx context.Context, t *testing.T, b submitter, id forge.IntentID) {
	t.Helper()
	in := forge.Intent{ID: id, Project: "shop", Source: forge.SourceHuman, Origin: forge.Origin{System: "test", EventID: string(id)}}
	in.Title, in.Body, in.Recipe = string(id), "do it", "touch"
	ruling, err := b.Ask(ctx, forge.Event{ID: "submit/" + string(id), To: forge.Key{Project: "shop", Intent: id}, Message: &forge.Submit{Intent: in}})
	if err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
}

// submitter is the door of the bus for submissions.
type submitter interface {
	Ask(ctx context.Context, ev forge.Event) (forge.Ruling, error)
}
