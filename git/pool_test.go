package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// entries lists a directory without the pool's own names.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range all {
		if !strings.HasPrefix(e.Name(), ".") {
			found = append(found, e.Name())
		}
	}
	return found
}

func TestWarmCheckoutIsClean(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{
		".gitignore": "*.log\nnode_modules/\n", "a": "a\n", "dir/b": "b\n", "dir/deep/c": "c\n", "x/y": "y\n",
	})
	p := poolWith(t, r.store(), checkout.PoolConfig{})
	c, agent := prepare(t, p, "one", r.head("main"))
	inode := inodeOf(t, filepath.Join(c.Dir(), "dir"))
	agent.write("a.log", "ignored\n")
	agent.write("node_modules/m/index.js", "ignored\n")
	agent.write("untracked/file", "x\n")
	agent.write("dir/.git/HEAD", "ref: refs/heads/main\n")
	agent.write("dir/nested.git/HEAD", "ref: refs/heads/main\n")
	agent.write("empty/x", "")
	agent.git("init", "-q", "inner")
	agent.git("update-index", "--assume-unchanged", "a")
	agent.git("update-index", "--skip-worktree", "dir/b")
	agent.write("a", "A\n") // the same size
	agent.write("dir/b", "B\n")
	if err := os.RemoveAll(filepath.Join(c.Dir(), "x")); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	r.at(outside).write("y", "mine\n")
	agent.link(outside, "x")
	if err := os.Chmod(filepath.Join(c.Dir(), "dir/deep/c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(c.Dir(), "untracked"), 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	next := r.commit("moved", map[string]string{"a": "a2\n", "dir/deep/c": "", "e/f": "f\n"})
	c, agent = prepare(t, p, "two", next)
	if got := inodeOf(t, filepath.Join(c.Dir(), "dir")); got != inode {
		t.Error("the warm checkout was not used")
	}
	got := agent.files()
	want := []string{".gitignore", "a", "dir/b", "e/f", "x/y"}
	if !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
	if agent.read("a") != "a2\n" || agent.read("dir/b") != "b\n" || agent.read("x/y") != "y\n" {
		t.Error("a file has the wrong content")
	}
	if out := agent.git("status", "--porcelain", "--ignored"); out != "" || agent.git("ls-files", "-v", "a", "dir/b") != "H a\nH dir/b" {
		t.Error(out)
	}
	if r.at(outside).read("y") != "mine\n" {
		t.Error("written through a link")
	}
}

// files lists every file outside of the top .git.
func (r repo) files() []string {
	r.t.Helper()
	var found []string
	err := filepath.WalkDir(r.dir, func(p string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(r.dir, p)
		if rel == ".git" {
			return filepath.SkipDir
		}
		if d != nil && !d.IsDir() {
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

func inodeOf(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return inode(info)
}

func TestReopen(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", ".gitignore": "cache/\n"})
	p := newPool(t, r.store())
	base := r.head("main")
	c, agent := prepare(t, p, "t", base)
	agent.write("a", "b\n")
	agent.git("commit", "-qam", "work")
	agent.write("cache/x", "warm\n")
	if _, err := p.Reopen("t", base); !errors.Is(err, git.ErrMissing) {
		t.Fatalf("before it was collected: %v", err)
	}
	got, err := c.Collect(t.Context(), attempt("t"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Reopen("t", got.Head)
	if err != nil || again.Start() != base || again.Branch() != "forge/t" || agent.read("cache/x") != "warm\n" {
		t.Fatalf("reopen: %v", err)
	}
	agent.write("a", "c\n")
	agent.git("commit", "-qam", "more")
	second, err := again.Collect(t.Context(), store.Attempt{Intent: "intent", Task: "t", Number: 2})
	if err != nil || second.Commits != 2 {
		t.Fatalf("second attempt: %+v, %v", second, err)
	}
	if _, err := p.Reopen("t", got.Head); !errors.Is(err, git.ErrMissing) {
		t.Fatalf("at an old head: %v", err)
	}
	if _, err := p.Reopen("none", base); !errors.Is(err, git.ErrMissing) {
		t.Fatalf("never prepared: %v", err)
	}
}

func TestViewIsDetached(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	p := newPool(t, r.store())
	v, err := p.View(t.Context(), "review-1", r.head("main"))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.at(v.Dir()).git("status", "--porcelain", "-b"); got != "## HEAD (no branch)" || v.Branch() != "" {
		t.Fatal(got)
	}
	if _, err := v.Collect(t.Context(), attempt("t")); err == nil {
		t.Fatal("collected from a view")
	}
	if _, err := p.View(t.Context(), "../x", r.head("main")); err == nil {
		t.Fatal("a path as a name")
	}
	if _, err := p.View(t.Context(), "y", oid(t, strings.Repeat("1", 40))); !errors.Is(err, git.ErrNotFound) {
		t.Fatal(err)
	}
}

func TestSweepAndClose(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	dir := filepath.Join(t.TempDir(), "w")
	p, err := checkout.NewPool(t.Context(), checkout.PoolConfig{Dir: dir, Store: r.store(), Max: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"a", "b", "c"} {
		prepare(t, p, n, r.head("main"))
	}
	if err := p.Sweep(func(name string) bool { return name == "b" }); err != nil {
		t.Fatal(err)
	}
	if got := entries(t, dir); !slices.Equal(got, []string{"b"}) {
		t.Fatalf("checkouts %q", got)
	}
	ctx := wait.Briefly(t, 20*time.Millisecond)
	if _, err := checkout.NewPool(ctx, checkout.PoolConfig{Dir: dir, Store: r.store()}); !errors.Is(err, git.ErrBusy) {
		t.Fatalf("a second pool: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if trash, err := os.ReadDir(filepath.Join(dir, ".trash")); err != nil || len(trash) > 0 {
		t.Fatalf("trash %v, %v", trash, err)
	}
	if _, err := p.Prepare(t.Context(), "d", r.head("main")); !errors.Is(err, git.ErrClosed) {
		t.Fatal(err)
	}
	next := poolAt(t, r.store(), dir)
	if _, err := next.Reopen("b", r.head("main")); err != nil {
		t.Fatal(err)
	}
	warm, err := os.ReadDir(filepath.Join(dir, ".warm"))
	if err != nil || len(warm) != 1 {
		t.Fatalf("warm %v, %v", warm, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", "d/b": "b\n"})
	s := r.store()
	p := newPool(t, s)
	base := r.head("main")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 3 {
				task := git.Name(fmt.Sprintf("t%d-%d", i, n))
				c, err := p.Prepare(t.Context(), task, base)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = c.CommitAll(t.Context(), "x", git.Identity{})
				if !errors.Is(err, git.ErrNothingToCommit) {
					t.Error(err)
				}
				r.at(c.Dir()).write("a", string(task))
				if _, err = c.CommitAll(t.Context(), "x", git.Identity{Name: "R <x>\n", Email: "r"}); err != nil {
					t.Error(err)
				}
				if got, err := c.Collect(t.Context(), attempt(string(task))); err != nil || got.Commits != 1 || got.Leftover != "" {
					t.Error(got, err)
				}
				if err := c.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	kept, err := s.List(t.Context(), "intent")
	if err != nil || len(kept) != 12 {
		t.Fatal(len(kept), err)
	}
	r.git("fsck", "--strict")
}

// Spaces, colons, quotes and letters beyond ASCII in every path.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := newRepo(t, map[string]string{"a b/ü:\"q\"": "x\n"})
	odd := r.at(filepath.Join(filepath.Dir(r.dir), "re po:ü\"x\\"))
	must(t, os.Rename(r.dir, odd.dir))
	s, base := odd.store(), odd.head("main")
	c, agent := prepare(t, poolAt(t, s, filepath.Join(odd.dir, ".forge", "work trees:é")), "t", base)
	agent.write("a b/ü:\"q\"", "y\n")
	agent.git("commit", "-qam", "work")
	got, err := c.Collect(ctx, attempt("t"))
	if err != nil || len(got.Changes) != 1 || got.Changes[0].Path != "a b/ü:\"q\"" {
		t.Fatalf("%+v, %v", got, err)
	}
	onto := odd.commit("other", map[string]string{"o": "o\n"})
	rebased, err := s.Rebase(ctx, base, got.Head, onto)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(ctx, "main", onto, rebased.Head); err != nil || odd.read("a b/ü:\"q\"") != "y\n" {
		t.Fatal(err)
	}
}

// Whatever half of a checkout a crash leaves, the next pool goes on.
func TestPoolRepairs(t *testing.T) {
	t.Parallel()
	for _, lose := range []string{"t", ".own/t", ".own/t/index", ".own/t/state.json", "t/.git", ".warm/1", ".own/.warm-1", ".own/.warm-1/index"} {
		t.Run(lose, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a": "a\n", "d/b": "b\n"})
			dir := filepath.Join(t.TempDir(), "w")
			p := poolWith(t, r.store(), checkout.PoolConfig{Dir: dir})
			prepare(t, p, "t", r.head("main"))
			old, _ := prepare(t, p, "old", r.head("main"))
			if err := old.Release(); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			warm, err := os.ReadDir(filepath.Join(dir, ".warm"))
			if err != nil || len(warm) != 1 {
				t.Fatal("no warm checkout", err)
			}
			if err := os.RemoveAll(filepath.Join(dir, strings.Replace(lose, "1", warm[0].Name(), 1))); err != nil {
				t.Fatal(err)
			}
			if exists(filepath.Join(dir, ".own/t")) {
				r.at(dir).write(".own/t/index.lock", "")
			}
			p = poolWith(t, r.store(), checkout.PoolConfig{Dir: dir})
			for _, name := range []string{"t", "u", "v"} {
				if _, agent := prepare(t, p, name, r.head("main")); agent.git("status", "--porcelain", "--ignored") != "" {
					t.Errorf("%s is not clean", name)
				}
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func inode(info os.FileInfo) string {
	return fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)
}

// A commit that failed when the index had already moved is made the next time: the index
// is not taken for that of the commit before, beside which nothing would have changed.
func TestCommitAllAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	dir := filepath.Join(t.TempDir(), "w")
	p := poolWith(t, r.store(), checkout.PoolConfig{Dir: dir})
	c, agent := prepare(t, p, "t", r.head("main"))
	agent.write("a", "other\n")
	trash := filepath.Join(dir, ".trash")
	must(t, os.RemoveAll(trash))
	if _, err := c.CommitAll(t.Context(), "x", git.Identity{}); err == nil {
		t.Fatal("it throws the old .git away into nothing")
	}
	must(t, os.Mkdir(trash, 0o700))
	commit, err := c.CommitAll(t.Context(), "x", git.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.git("show", string(commit)+":a"); got != "other" {
		t.Errorf("committed %q", got)
	}
}
