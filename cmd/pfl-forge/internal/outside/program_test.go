package outside

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testport"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// chainVariant says how a gateway learns what happens, and whether it is killed.
type chainVariant struct {
	name   string
	hooks  bool
	every  time.Duration // between two sweeps
	killed bool
}

// program is the gateway as a process of its own, which is started again when
// it is killed. It reaches the forge through us.
type program struct {
	w      *pullWorld
	path   string
	args   []string
	log    *os.File
	killed bool
	// ended is closed when the process is gone for good.
	ended chan struct{}

	mu sync.Mutex
	// run is the process, and gone is closed at its end.
	run  *exec.Cmd
	gone chan struct{}
	// step is that of the script, wrote how often each kind of write was tried
	// in it, and cut at which writes the process was killed.
	step  string
	wrote map[string]int
	cut   []string
	// killing says that the end of the process is no surprise, and ending that
	// it is not started again.
	killing, ending bool
	kills           int
}

// program starts the gateway of a path, which ends with the test.
func (w *pullWorld) program(path string, v chainVariant) *program {
	t := w.t
	t.Helper()
	p := &program{w: w, path: path, killed: v.killed, ended: make(chan struct{}), wrote: map[string]int{}}
	forge, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p.between(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(forge) }}))
	t.Cleanup(front.Close)
	listen, told := fmt.Sprintf("127.0.0.1:%d", testport.Free(t)), ""
	if v.hooks {
		told = "hooks: [work], "
	}
	for name, text := range map[string]string{
		"token":        w.tokens["bot"],
		"secret":       hookSecret,
		"gateway.yaml": "listen: " + listen + "\nhooks: hooks.yaml\nforges: forges.yaml\ntokens: tokens.yaml\n",
		"tokens.yaml": fmt.Sprintf("tokens:\n  ada: {person: ada, accounts: {work: %d}, projects: {shop: [requester, approver, operator]}}\n"+
			"  ruth: {person: ruth, accounts: {work: %d}, projects: {shop: [approver, operator]}}\n", w.ids["ada"], w.ids["root1"]),
		"hooks.yaml":  fmt.Sprintf("hooks:\n  - {name: work, kind: %s, secrets: [%q]}\n", w.dialect, filepath.Join(w.settings, "secret")),
		"intake.yaml": "rules:\n  - {name: labelled, when: {label: forge, permission: write}, do: go, project: shop, risk: low}\n",
		"forges.yaml": fmt.Sprintf("forges:\n  - {name: work, kind: %s, url: %q, token_file: token, repositories: [%q], %ssweep_every: %s, "+
			"rules: intake.yaml, pull_requests: {shop: %q}}\n",
			w.dialect, front.URL, w.repo, told, v.every, w.repo),
	} {
		if err := os.WriteFile(filepath.Join(w.settings, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if v.hooks {
		w.hookedTo("http://" + listen + "/hooks/work")
	}
	p.args = []string{
		"--server", w.nats.URL(), "--replica", "gate", "--state-dir", t.TempDir(), "--listen", "127.0.0.1:0",
		"--gateway", filepath.Join(w.settings, "gateway.yaml"), "--log-format", "text",
	}
	if p.log, err = os.Create(filepath.Join(t.TempDir(), "gateway.log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(p.log.Name())
			t.Logf("in step %q the gateway said:\n%s", p.step, text)
		}
		_ = p.log.Close()
	})
	go p.live()
	t.Cleanup(p.stop)
	wait.Until(t, "the gateway serves", func() bool {
		conn, err := new(net.Dialer).DialContext(wait.Context(t), "tcp", listen)
		return err == nil && conn.Close() == nil
	})
	return p
}

// hookedTo has the forge tell an address what happens to issues and pull requests.
func (w *pullWorld) hookedTo(address string) {
	w.t.Helper()
	if w.dialect == hooks.GitLab {
		w.hookedInLab(address, hookSecret)
		return
	}
	w.asIn(apis[w.dialect], "root1", http.MethodPost, "/repos/"+w.repo+"/hooks", object{
		"type": "gitea", "active": true, "config": object{"url": address, "content_type": "json", "secret": hookSecret},
		"events": []string{
			"issues", "issue_label", "issue_comment", "pull_request", "pull_request_comment", "pull_request_review", "pull_request_sync", "status",
		},
	}, nil)
}

// live runs the process, again and again where it was killed.
func (p *program) live() {
	defer close(p.ended)
	for {
		p.mu.Lock()
		if p.ending {
			p.mu.Unlock()
			return
		}
		run, gone := exec.Command(p.path, p.args...), make(chan struct{})
		run.Stdout, run.Stderr = p.log, p.log
		err := run.Start()
		if err != nil {
			p.ending = true
		} else {
			p.run, p.gone, p.killing = run, gone, false
		}
		p.mu.Unlock()
		if err != nil {
			p.w.t.Error(err)
			return
		}
		err = run.Wait()
		close(gone)
		p.mu.Lock()
		if !p.killing {
			p.ending = true
			p.w.t.Errorf("the gateway has ended by itself: %v", err)
		}
		p.mu.Unlock()
	}
}

// kill kills the process, and returns when it is gone. Another one begins.
func (p *program) kill() {
	p.mu.Lock()
	run, gone := p.run, p.gone
	if run != nil && !p.killing {
		p.killing = true
		p.kills++
		_ = run.Process.Kill()
	}
	p.mu.Unlock()
	if gone != nil {
		<-gone
	}
}

// stop kills the process for good.
func (p *program) stop() {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	p.kill()
	<-p.ended
}

// next is called between two steps of the script: the process is killed there, if it is to be.
func (p *program) next(step string) {
	p.mu.Lock()
	p.step = step
	clear(p.wrote)
	p.mu.Unlock()
	if p.killed {
		p.kill()
	}
}

// between stands between the gateway and the forge. If the gateway is to be killed,
// it is, when it first makes a write of a kind in a step, which the forge then never
// sees; and when it makes the second one, which the forge has carried out then.
func (p *program) between(forge http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !p.killed || r.Method == http.MethodGet {
			forge.ServeHTTP(out, r)
			return
		}
		p.mu.Lock()
		kind := r.Method + " " + r.URL.Path
		p.wrote[kind]++
		times := p.wrote[kind]
		if times <= 2 {
			p.cut = append(p.cut, fmt.Sprintf("%s: %s, %d", p.step, kind, times))
		}
		p.mu.Unlock()
		if times > 2 {
			forge.ServeHTTP(out, r)
			return
		}
		if times == 2 {
			forge.ServeHTTP(httptest.NewRecorder(), r)
		}
		p.kill()
	})
}

// unharmed checks that the gateway logged no error in any of its lives.
func (p *program) unharmed() {
	t := p.w.t
	t.Helper()
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte("level=ERROR")) {
			t.Errorf("the gateway says %s", line)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.killed {
		return
	}
	cuts := strings.Join(p.cut, "\n")
	t.Logf("it was killed %d times, and at these writes:\n%s", p.kills, cuts)
	for _, write := range [][]string{{"/comments, ", "/notes, "}, {"/pulls, ", "/merge_requests, "}, {"/statuses/"}, {"/merge, "}, {"the merge: "}} {
		if !slices.ContainsFunc(write, func(part string) bool { return strings.Contains(cuts, part) }) {
			t.Errorf("it was never killed at a write to %q", write)
		}
	}
}
