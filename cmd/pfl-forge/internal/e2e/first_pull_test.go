package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testport"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
)

// newcomer is a forge with a repository in which ada may write, before anything
// is known there of pfl-forge but an account.
type newcomer struct {
	t         *testing.T
	url, repo string
	tokens    map[string]string
	// kind is that of the forge, fake is nil for a real one.
	kind string
	fake *forgetest.Fake
}

// as calls the forge as a person does in the browser.
func (w *newcomer) as(user, method, path string, in, out any) {
	w.t.Helper()
	person.Person{API: w.url + person.Gitea, Token: w.tokens[user]}.Does(w.t, method, path, in, out)
}

// repository makes the repository.
func (w *newcomer) repository() {
	_, name, _ := strings.Cut(w.repo, "/")
	w.as("root1", http.MethodPost, "/user/repos", map[string]any{"name": name, "auto_init": true}, nil)
	w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/bot", map[string]any{"permission": "admin"}, nil)
	w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/ada", map[string]any{"permission": "write"}, nil)
}

// newcomerOnFake returns one on the fake, whose git is behind passwords at the
// same address, as that of a real forge is.
func newcomerOnFake(t *testing.T) *newcomer {
	t.Helper()
	fake := forgetest.NewFake()
	t.Cleanup(fake.Close)
	api, err := url.Parse(fake.URL())
	if err != nil {
		t.Fatal(err)
	}
	w := &newcomer{t: t, url: fake.URL(), repo: "root1/web", kind: "gitea", fake: fake, tokens: map[string]string{
		"root1": "root1", "bot": "bot", "ada": "ada", "x-access-token": "bot", "oauth2": "bot", // the last two are names for a token alone
	}}
	w.repository()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := fake.Dir(w.repo)
	if out, err := exec.CommandContext(wait.Context(t), git, "-C", dir, "config", "http.receivepack", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Root: "/" + w.repo + ".git", Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}
	proxy := httputil.NewSingleHostReverseProxy(api)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, backend.Root+"/") {
			proxy.ServeHTTP(out, r)
			return
		}
		if user, password, given := r.BasicAuth(); !given || password != w.tokens[user] {
			out.Header().Set("WWW-Authenticate", "Basic realm=git")
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(out, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// newcomerOnGitea returns one on the real Gitea of a folder with its url and tokens.
func newcomerOnGitea(t *testing.T, dir string) *newcomer {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	w := &newcomer{t: t, kind: "gitea", url: read("url"), repo: fmt.Sprintf("root1/first%d", time.Now().UnixNano()), tokens: map[string]string{
		"root1": read("admin.token"), "bot": read("bot.token"), "ada": read("ada.token"),
	}}
	w.repository()
	return w
}

// shell is a shell into which somebody pastes one block of commands after another.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

// over is printed after each block, and wrong when a command fails.
const over, wrong = "#over", "#wrong"

// newShell starts a shell in a folder, of a person with a home and the programs that were built.
func newShell(t *testing.T, dir, home string) *shell {
	t.Helper()
	tools := t.TempDir()
	for _, path := range programs() {
		name := filepath.Base(strings.TrimSuffix(path, "/v2"))
		as := name
		if strings.Contains(path, "/services/") {
			as = "forge-" + name
		}
		target := filepath.Join(bin, name)
		if _, err := os.Stat(target); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(tools, as)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(wait.Context(t), "bash")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=ada", "GIT_AUTHOR_EMAIL=ada@localhost", "GIT_COMMITTER_NAME=ada", "GIT_COMMITTER_EMAIL=ada@localhost")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that whatever a failed test has started is ended with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
	})
	s := &shell{t: t, in: in, out: bufio.NewScanner(out)}
	s.paste("trap 'echo " + wrong + "' ERR")
	return s
}

// paste runs a block, with lines that its last command reads, and returns what
// is printed and whether each command succeeded.
func (s *shell) paste(block string, lines ...string) (printed string, ok bool) {
	s.t.Helper()
	text := strings.Join(append([]string{strings.TrimSpace(block)}, lines...), "\n")
	if _, err := fmt.Fprintf(s.in, "%s\necho\necho '%s'\n", text, over); err != nil {
		s.t.Fatal(err)
	}
	ok = true
	for s.out.Scan() {
		switch line := s.out.Text(); line {
		case over:
			return printed, ok
		case wrong:
			ok = false
		default:
			printed += line + "\n"
		}
	}
	s.t.Fatalf("the shell has ended: %s", printed)
	return "", false
}

// must is paste for a block that has to succeed.
func (s *shell) must(block string, lines ...string) string {
	s.t.Helper()
	printed, ok := s.paste(block, lines...)
	if !ok {
		s.t.Fatalf("%s\n%s", block, printed)
	}
	return printed
}

// TestFirstPullRequest does what the guide of the first pull request says, from its first
// command to its last, with what it has a person do in the browser in between: an issue
// gets a label, a change is proposed, a person merges it, and the issue is closed. So it
// is on the fake, and on a real Gitea where PFL_FORGE_GITEA names the folder with its url
// and tokens; in full size also with what the guides of GitHub and GitLab say instead.
func TestFirstPullRequest(t *testing.T) {
	t.Parallel()
	t.Run("fake", func(t *testing.T) {
		t.Parallel()
		newcomerOnFake(t).firstPull()
	})
	if testsize.Full() {
		for _, kind := range []string{"github", "gitlab"} {
			t.Run("fake "+kind, func(t *testing.T) {
				t.Parallel()
				w := newcomerOnFake(t)
				w.kind = kind
				w.firstPull()
			})
		}
	}
	if dir := os.Getenv("PFL_FORGE_GITEA"); dir != "" {
		t.Run("gitea", func(t *testing.T) { newcomerOnGitea(t, dir).firstPull() })
	}
}

// firstPull is TestFirstPullRequest for a newcomer.
func (w *newcomer) firstPull() {
	t := w.t
	blocks := w.blocks()
	at, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	dir, home := testdir.New(t), t.TempDir()
	testdir.Secret(t, home, map[string]string{".netrc": fmt.Sprintf("machine %s login ada password %s\n", at.Hostname(), w.tokens["ada"])})
	w.secrets(dir)
	s := newShell(t, dir, home)
	// Everything on the page is run as it stands but these: what a reader fills
	// in, and addresses that other tests may have taken.
	filled := strings.NewReplacer(
		"https://git.example.com", w.url, "git.example.com", at.Hostname(), "shop/web", w.repo, "BOT=forge", "BOT=bot",
		"https://github.com", w.url, "github.com", at.Hostname(), "https://gitlab.com", w.url, "gitlab.com", at.Hostname(), "shop/front/web", w.repo,
		"trusted_origins: [gitea]", "trusted_origins: ["+w.kind+"]", "127.0.0.1:4222", fmt.Sprintf("127.0.0.1:%d", testport.Free(t)),
	)
	var issue, last string
	for _, block := range blocks {
		block = filled.Replace(block)
		switch {
		case strings.Contains(block, "make build"): // TestMain has done it
		case strings.Contains(block, "read -rsp"):
			s.must(block, w.tokens["bot"])
		case strings.Contains(block, "gateway init"):
			s.must(block)
			w.unlisten(dir)
		case strings.Contains(block, " doctor "):
			wait.Until(t, "the doctor finds nothing wrong", func() bool {
				var ok bool
				last, ok = s.paste(block)
				return ok
			})
		case strings.Contains(block, " status "):
			issue = w.issueToMerged()
			wait.Until(t, "the intent is done", func() bool {
				last = s.must(block)
				return strings.Contains(last, "1 done")
			})
		default:
			s.must(block)
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(logs) != 7 {
		t.Errorf("there are the logs %q, %v", logs, err)
	}
	for _, path := range logs {
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("level=ERROR")) {
			t.Errorf("%s has an error, %v:\n%s", filepath.Base(path), err, tail(text, 3000))
		}
	}
	if issue == "" {
		t.Error("the page has no issue merged")
	}
	if left := strings.TrimSpace(s.must("wait; jobs -rp")); left != "" {
		t.Errorf("of what the page starts these are left: %s", left)
	}
}

// issueToMerged does what the page has a person do in the browser, and returns
// the path of the issue, which is closed then.
func (w *newcomer) issueToMerged() string {
	w.t.Helper()
	var made struct{ Number int64 }
	w.as("ada", http.MethodPost, "/repos/"+w.repo+"/issues", map[string]any{"title": "Greet people", "body": "Please."}, &made)
	issue := fmt.Sprintf("/repos/%s/issues/%d", w.repo, made.Number)
	w.as("ada", http.MethodPost, issue+"/labels", map[string]any{"labels": []string{"forge"}}, nil)
	var pulls []struct {
		Number int64
		Body   string
	}
	wait.Until(w.t, "there is a pull request", func() bool {
		w.as("ada", http.MethodGet, "/repos/"+w.repo+"/pulls?state=open&base_branch=main&limit=50", nil, &pulls)
		return len(pulls) == 1
	})
	if !strings.Contains(pulls[0].Body, "Please.") {
		w.t.Errorf("the pull request says %q", pulls[0].Body)
	}
	w.as("ada", http.MethodPost, fmt.Sprintf("/repos/%s/pulls/%d/merge", w.repo, pulls[0].Number), map[string]any{"Do": "squash"}, nil)
	var got struct{ State string }
	wait.Until(w.t, "the issue is closed", func() bool {
		w.as("ada", http.MethodGet, issue, nil, &got)
		return got.State == "closed"
	})
	return issue
}
