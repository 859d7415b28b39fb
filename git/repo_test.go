package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
)

// repo is a person's repository, driven by real git.
type repo struct {
	t   testing.TB
	dir string
}

// newRepo makes a repository on branch main with one commit that has the given files.
func newRepo(t testing.TB, files map[string]string) repo {
	t.Helper()
	r := repo{t: t, dir: filepath.Join(testdir.New(t), "repo")}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.Init(t, r.dir)
	r.commit("first", files)
	return r
}

func (r repo) config() {
	r.git("config", "user.name", "A Person")
	r.git("config", "user.email", "person@example.org")
	r.git("config", "gc.auto", "0")
}

// at is the same repository seen from another directory.
func (r repo) at(dir string) repo { return repo{t: r.t, dir: dir} }

// git runs git as a person would and returns its trimmed output.
func (r repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (r repo) try(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_EDITOR=true", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// commit writes files (an empty content deletes one) and commits them.
func (r repo) commit(message string, files map[string]string) git.OID {
	r.t.Helper()
	var added []string
	for name, content := range files {
		if content == "" {
			r.git("rm", "-q", "--", name)
			continue
		}
		r.write(name, content)
		added = append(added, name)
	}
	if len(added) > 0 {
		r.git(append([]string{"add", "-f", "--"}, added...)...)
	}
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.head("HEAD")
}

func (r repo) write(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r repo) link(target, name string) {
	r.t.Helper()
	if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// mktree makes a tree object with any names in it.
func (r repo) mktree(entries string) string {
	r.t.Helper()
	cmd := exec.Command("git", "mktree")
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(entries)
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (r repo) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r repo) head(rev string) git.OID {
	r.t.Helper()
	return oid(r.t, r.git("rev-parse", "--verify", rev))
}

func (r repo) store() *store.Store {
	r.t.Helper()
	s, err := store.OpenLocal(r.t.Context(), store.LocalConfig{Path: r.dir, AllowBare: true})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func oid(t testing.TB, s string) git.OID {
	t.Helper()
	o, err := git.ParseOID(s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func newPool(t testing.TB, s *store.Store) *checkout.Pool {
	t.Helper()
	return poolAt(t, s, filepath.Join(t.TempDir(), "worktrees"))
}

func poolAt(t testing.TB, s *store.Store, dir string) *checkout.Pool {
	t.Helper()
	return poolWith(t, s, checkout.PoolConfig{Dir: dir})
}

func poolWith(t testing.TB, s *store.Store, cfg checkout.PoolConfig) *checkout.Pool {
	t.Helper()
	if cfg.Store = s; cfg.Dir == "" {
		cfg.Dir = filepath.Join(t.TempDir(), "worktrees")
	}
	p, err := checkout.NewPool(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// prepare makes a checkout of a commit for a task, and returns it and the repository in it.
func prepare(t testing.TB, p *checkout.Pool, task string, at git.OID) (*checkout.Checkout, repo) {
	t.Helper()
	c, err := p.Prepare(t.Context(), git.Name(task), at)
	if err != nil {
		t.Fatal(err)
	}
	return c, repo{t: t, dir: c.Dir()}
}

func attempt(task string) store.Attempt {
	return store.Attempt{Intent: "intent", Task: git.Name(task), Number: 1}
}
