package git_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

func TestOpenLocalSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	open := func(dir string) (*store.Store, error) { return store.OpenLocal(ctx, store.LocalConfig{Path: dir}) }
	if _, err := open(t.TempDir()); !errors.Is(err, git.ErrNotRepository) {
		t.Error(err)
	}
	if _, err := open(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a missing directory")
	}
	// Where there is a repository, what git says is the cause: that it is
	// another's, or its configuration.
	damaged := newRepo(t, map[string]string{"a": "a\n"})
	damaged.write(".git/config", "[core\n")
	if _, err := open(damaged.dir); err == nil || errors.Is(err, git.ErrNotRepository) || !strings.Contains(err.Error(), "bad config line 1") {
		t.Errorf("a configuration that cannot be read: %v", err)
	}
	bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
	if _, err := open(bare.dir); !errors.Is(err, git.ErrBare) {
		t.Error(err)
	}
	if s, err := store.OpenLocal(ctx, store.LocalConfig{Path: bare.dir, AllowBare: true}); err != nil || s.WorkTree() != "" {
		t.Error(err)
	}
	fresh := repo{t: t, dir: t.TempDir()}
	fresh.git("init", "-q", "-b", "main")
	s, err := open(fresh.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Inspect(ctx, "main"); !errors.Is(err, git.ErrNoCommit) {
		t.Error(err)
	}
	r := newRepo(t, map[string]string{"a": "a\n", "sub/b": "b\n"})
	s, err = open(filepath.Join(r.dir, "sub"))
	if err != nil || s.WorkTree() != r.dir {
		t.Fatalf("from a subdirectory: %v", err)
	}
	if _, err := s.Inspect(ctx, "none"); !errors.Is(err, git.ErrNoBranch) {
		t.Error(err)
	}
	if b, err := s.CurrentBranch(); err != nil || b != "main" {
		t.Error(b, err)
	}
	if head, err := s.Inspect(ctx, "main"); err != nil || head != r.head("main") {
		t.Error(err)
	}
	r.git("checkout", "-q", "--detach")
	if _, err := s.Inspect(ctx, "main"); !errors.Is(err, git.ErrDetached) {
		t.Error(err)
	}
	if _, err := s.CurrentBranch(); !errors.Is(err, git.ErrDetached) {
		t.Error(err)
	}
	r.git("checkout", "-q", "main")
	r.git("worktree", "add", "-q", "../linked", "-b", "linked")
	if s, err := open(filepath.Join(filepath.Dir(r.dir), "linked")); err != nil || s.WorkTree() != r.dir {
		t.Errorf("from a linked working tree: %v", err)
	}
	r.git("config", "extensions.partialClone", "origin")
	if _, err := open(r.dir); !errors.Is(err, git.ErrUnsupported) {
		t.Error(err)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "hello\n", "d/b": "b\n", "[x]*": "glob\n"})
	r.link("/etc/passwd", "l")
	r.git("add", "l")
	r.git("commit", "-qm", "link")
	s, head := r.store(), r.head("main")
	for name, want := range map[git.Path]string{"a": "hello\n", "d/b": "b\n", "[x]*": "glob\n"} {
		if b, err := s.ReadFile(t.Context(), head, name, 100); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for _, name := range []git.Path{"none", "d", "l"} {
		if _, err := s.ReadFile(t.Context(), head, name, 100); !errors.Is(err, git.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.ReadFile(t.Context(), head, "a", 3); !errors.Is(err, git.ErrTooLarge) {
		t.Error(err)
	}
	if _, err := s.ReadFile(t.Context(), oid(t, strings.Repeat("1", 40)), "a", 100); !errors.Is(err, git.ErrNotFound) {
		t.Error(err)
	}
}

func TestDiffAndChanges(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n2\n", "b": "b\n", "bin": "\x00"})
	base := r.head("main")
	head := r.commit("change", map[string]string{"a": "1\nzwei\n3\n", "b": "", "bin": "\x00\x01", "tab\tname": "n\n"})
	s := r.store()
	got, err := s.Changes(t.Context(), base, head)
	want := []objects.FileChange{
		{Path: "a", Added: 2, Deleted: 1},
		{Path: "b", Deleted: 1},
		{Path: "bin", Binary: true},
		{Path: "tab\tname", Added: 1},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	patch, cut, err := s.Diff(t.Context(), base, head, 1<<20)
	if err != nil || cut || !strings.Contains(string(patch), "+zwei\n") {
		t.Errorf("%s, %v, %v", patch, cut, err)
	}
	short, cut, err := s.Diff(t.Context(), base, head, 100)
	if err != nil || !cut || len(short) > 100 || !bytes.HasPrefix(patch, short) || short[len(short)-1] != '\n' {
		t.Errorf("%q, %v, %v", short, cut, err)
	}
	if n, err := s.Commits(t.Context(), base, head); err != nil || n != 1 {
		t.Error(n, err)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "-rf", "a/b", "..", "x.lock", "A", "a b", strings.Repeat("a", 81), "a*", "é"} {
		if _, err := git.ParseName(bad); err == nil {
			t.Errorf("name %q was accepted", bad)
		}
	}
	for _, bad := range []string{"", "HEAD", "@", "refs/heads/x", "\xff", strings.Repeat("a", 201)} { // stricter than git
		if _, err := git.ParseBranch(bad); err == nil {
			t.Errorf("branch %q was accepted", bad)
		}
	}
	for _, bad := range []string{
		"-x", "a..b", "a.lock", "a/.b", "a//b", "/a", "a/", "a@{1}", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\", "a\n",
		"a.", "a/b.lock/c",
	} {
		if _, err := git.ParseBranch(bad); err == nil {
			t.Errorf("branch %q was accepted", bad)
		}
		if _, err := (repo{t: t, dir: t.TempDir()}).try("check-ref-format", "--branch", bad); err == nil {
			t.Errorf("git accepts branch %q", bad)
		}
	}
	for _, good := range []string{"main", "feature/x-1", "release-1.0", "ünïcode", "a@b"} {
		if _, err := git.ParseBranch(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "/a", "../a", "a/../b", "a//b", ".", "a\x00", "a/"} {
		if _, err := git.ParsePath(bad); err == nil {
			t.Errorf("path %q was accepted", bad)
		}
	}
	for _, bad := range []string{"", "HEAD", strings.Repeat("0", 40), strings.Repeat("A", 40), strings.Repeat("a", 39)} {
		if _, err := git.ParseOID(bad); err == nil {
			t.Errorf("object name %q was accepted", bad)
		}
	}
}

// A shallow clone of a person's works too: CI makes those.
func TestShallowRepository(t *testing.T) {
	t.Parallel()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	person.commit("second", map[string]string{"a": "b\n"})
	person.git("push", "-q", "origin", "main")
	shallow := person.at(filepath.Join(t.TempDir(), "shallow"))
	person.git("clone", "-q", "--depth=1", "file://"+bare.dir, shallow.dir)
	shallow.config()
	s, base := shallow.store(), shallow.head("main")
	c, agent := prepare(t, newPool(t, s), "t", base)
	agent.write("a", "c\n")
	agent.git("commit", "-qam", "work")
	got, err := c.Collect(t.Context(), attempt("t"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(t.Context(), "main", base, got.Head); err != nil || shallow.read("a") != "c\n" {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(shallow.dir, ".git/shallow")); err != nil {
		t.Fatal(err)
	}
}
