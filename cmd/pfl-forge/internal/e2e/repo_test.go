package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/forgedir/schematest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
)

// repo is a person's repository.
type repo struct {
	t   testing.TB
	dir string
	// env has the person's own settings, as NAME=value.
	env []string
}

// unconfined is the word of a person who has everything run without a sandbox, as tests need
// whose recipes wait for files of the test.
const unconfined = "FORGE_SANDBOX=unconfined"

// newUnconfined is newRepo of a person who says unconfined.
func newUnconfined(t testing.TB, files map[string]string) *repo {
	t.Helper()
	r := newRepo(t, files)
	r.env = append(r.env, unconfined)
	return r
}

// newRepo makes a repository on branch main with these files committed, of a person with these
// settings. Paths are relative.
func newRepo(t testing.TB, files map[string]string, env ...string) *repo {
	t.Helper()
	r := &repo{t: t, dir: testdir.New(t), env: env}
	gittest.Init(t, r.dir)
	for name, content := range files {
		r.write(name, content)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "begin")
	r.trust()
	return r
}

// trust has the person say that the repository may run what it brings. Where its configuration
// is wrong, the test is about that.
func (r *repo) trust() {
	digest := strings.Fields(r.forge("trust", "--show", "-o", "name").stdout)
	_ = r.forge(append([]string{"trust"}, digest...)...)
}

func (r *repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) read(name string) string {
	r.t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(content)
}

// draft writes a draft of an intent that runs a recipe.
func (r *repo) draft(id, frontMatter string) {
	r.t.Helper()
	r.write(".forge/intent-drafts/"+id+".md", fmt.Sprintf("---\n%s\n---\n# %s\n\nPlease.\n", strings.TrimSpace(frontMatter), id))
}

// git runs git and returns its output without the last newline.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.tryGit(args...)
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (r *repo) tryGit(args ...string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// result is what a program said.
type result struct {
	code           int
	stdout, stderr string
}

// forge runs pfl-forge in the repository to its end.
func (r *repo) forge(args ...string) result {
	r.t.Helper()
	return r.start(args...).finish()
}

// must is forge, and the exit code has to be this one.
func (r *repo) must(code int, args ...string) result {
	r.t.Helper()
	got := r.forge(args...)
	if got.code != code {
		r.t.Fatalf("pfl-forge %v: exit code %d, want %d\n%s%s", args, got.code, code, got.stdout, got.stderr)
	}
	return got
}

func (r *repo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "pfl-forge"), args...)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), "NO_COLOR=1"), r.env...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// subjects lists the subject lines on main, the oldest first.
func (r *repo) subjects() []string {
	r.t.Helper()
	return strings.Split(r.git("log", "--reverse", "--first-parent", "--format=%s", "main"), "\n")
}

// tidy fails the test if anything was left behind: checkouts, processes, or a
// damaged repository; if a file does not fit its schema; or if the journals are not whole, whatever
// was killed.
func (r *repo) tidy() {
	r.t.Helper()
	r.must(0, "audit-log", "verify")
	if out, err := r.tryGit("fsck", "--no-dangling", "--no-progress"); err != nil || strings.TrimSpace(out) != "" {
		r.t.Errorf("git fsck: %v\n%s", err, out)
	}
	if list := processesIn(r.t, r.dir); len(list) > 0 {
		r.t.Errorf("processes are left: %v", list)
	}
	schematest.Check(r.t, r.dir)
	entries, err := os.ReadDir(filepath.Join(r.dir, ".forge", "worktrees"))
	if err != nil && !os.IsNotExist(err) {
		r.t.Error(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			r.t.Errorf("checkout %s is left", e.Name())
		}
	}
}

// processesIn lists the processes whose working directory or command line is in
// a folder.
func processesIn(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || e.Name() == fmt.Sprint(os.Getpid()) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.HasPrefix(cwd, dir) || bytes.Contains(line, []byte(dir)) {
			found = append(found, e.Name()+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// environment has variables of the programs under test, as NAME=value. Those of the test's own
// process stay as they are, so that tests can run side by side.
type environment []string

func (e *environment) set(name, value string) { *e = append(*e, name+"="+value) }

// onPath returns an environment in which programs are found by their names.
func onPath(programs ...string) (e environment) {
	dirs := make([]string, 0, len(programs)+1)
	for _, p := range programs {
		dirs = append(dirs, filepath.Dir(p))
	}
	e.set("PATH", strings.Join(append(dirs, os.Getenv("PATH")), string(os.PathListSeparator)))
	return e
}
