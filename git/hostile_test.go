package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// plant makes every kind of configuration that runs something when git is
// called in dir, and returns the file that it would create.
func (r repo) plant() string {
	r.t.Helper()
	canary := filepath.Join(r.t.TempDir(), "canary")
	script := filepath.Join(r.t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+canary+"\ncat 2>/dev/null\nexit 0\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	hooks := r.t.TempDir()
	for _, h := range []string{
		"post-checkout", "pre-commit", "post-commit", "reference-transaction", "post-index-change", "post-merge",
		"pre-push", "pre-receive", "update", "post-receive", "fsmonitor-watchman", "proc-receive", "post-update",
	} {
		for _, dir := range []string{hooks, filepath.Join(r.dir, ".git", "hooks")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				r.t.Fatal(err)
			}
			if err := os.Symlink(script, filepath.Join(dir, h)); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	config := "\n[core]\n\tfsmonitor = " + script + "\n\thooksPath = " + hooks + "\n\tsshCommand = " + script + "\n\tpager = " + script +
		"\n\teditor = " + script + "\n\talternateRefsCommand = " + script + "\n\tgitProxy = " + script + "\n\taskPass = " + script +
		"\n[uploadpack]\n\tpackObjectsHook = " + script + "\n[diff]\n\texternal = " + script + "\n[gpg]\n\tprogram = " + script +
		"\n[filter \"evil\"]\n\tclean = " + script + "\n\tsmudge = " + script + "\n\tprocess = " + script +
		"\n[diff \"evil\"]\n\ttextconv = " + script + "\n\tcommand = " + script + "\n[merge \"evil\"]\n\tdriver = " + script +
		"\n[credential]\n\thelper = !" + script + "\n[include]\n\tpath = " + filepath.Join(r.dir, "more.config") + "\n"
	f, err := os.OpenFile(filepath.Join(r.dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.WriteString(config); err != nil {
		r.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
	r.write(".git/info/attributes", "* filter=evil diff=evil merge=evil\n")
	return canary
}

func TestPlantedConfigurationNeverRuns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := newRepo(t, map[string]string{"a": "a\n", "dir/b": "b\n"})
	s := r.store()
	p := newPool(t, s)
	base := r.head("main")
	c, agent := prepare(t, p, "t", base)
	agent.write("a", "committed\n")
	agent.git("commit", "-qam", "work")
	canary := agent.plant()
	agent.write("dir/b", "left\n")
	if err := os.CopyFS(filepath.Join(c.Dir(), "dir", ".git"), os.DirFS(filepath.Join(c.Dir(), ".git"))); err != nil {
		t.Fatal(err)
	}
	got, err := c.Collect(ctx, attempt("t"))
	if err != nil || got.Commits != 1 || got.Leftover == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := c.CommitAll(ctx, "all", git.Identity{}); err != nil {
		t.Fatal(err)
	}
	if got, err = c.Collect(ctx, attempt("t")); err != nil || got.Commits != 2 || got.Leftover != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, _, err := s.Diff(ctx, base, got.Head, 1<<20); err != nil {
		t.Fatal(err)
	}
	onto := r.commit("other", map[string]string{"o": "o\n"})
	rebased, err := s.Rebase(ctx, base, got.Head, onto)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(ctx, "main", onto, rebased.Head); err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	next, agent := prepare(t, p, "u", base)
	if _, err := os.Lstat(filepath.Join(next.Dir(), "dir", ".git")); err == nil {
		t.Error("a repository inside a tracked directory survived")
	}
	if agent.git("status", "--porcelain", "--ignored") != "" || strings.Contains(agent.read(".git/config"), "evil") {
		t.Error("something planted survived")
	}
	agent.git("commit", "-q", "--allow-empty", "-m", "the next agent's")
	if _, err := os.Stat(canary); err == nil {
		t.Fatal("planted configuration was executed")
	}
	bad := newRepo(t, map[string]string{"a": "a\n"})
	canary = bad.plant()
	bad.git("status")
	if _, err := os.Stat(canary); err != nil {
		t.Fatal("the canary never sings")
	}
}

// What an agent can do to its checkout, and what Collect says about it.
func TestCollectContainsDamage(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	remove := func(t *testing.T, r repo, name string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(t *testing.T, r repo, target, name string) {
		t.Helper()
		remove(t, r, name)
		if err := os.Symlink(target, filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	const branch = ".git/refs/heads/forge/t"
	for _, tc := range []struct {
		name     string
		do       func(t *testing.T, r, user repo)
		fault    git.Fault
		leftover bool
	}{
		{"checkout deleted", func(t *testing.T, r, _ repo) { remove(t, r, ".") }, git.Damaged, false},
		{"checkout replaced by a link", func(t *testing.T, r, user repo) {
			remove(t, r, ".")
			link(t, r.at(filepath.Dir(r.dir)), user.dir, "t")
		}, git.Damaged, false},
		{"no .git", func(t *testing.T, r, _ repo) { remove(t, r, ".git") }, git.Damaged, true},
		{".git is a file", func(t *testing.T, r, user repo) {
			remove(t, r, ".git")
			r.write(".git", "gitdir: "+user.dir+"/.git\n")
		}, git.Damaged, true},
		{".git is a link", func(t *testing.T, r, user repo) { link(t, r, user.dir+"/.git", ".git") }, git.Damaged, true},
		{"refs is a link", func(t *testing.T, r, user repo) { link(t, r, user.dir+"/.git/refs", ".git/refs") }, git.Damaged, true},
		{"heads is a link", func(t *testing.T, r, user repo) { link(t, r, user.dir+"/.git/refs/heads", ".git/refs/heads") }, git.Damaged, true},
		{"objects is a link", func(t *testing.T, r, user repo) { link(t, r, user.dir+"/.git/objects", ".git/objects") }, git.Damaged, true},
		{"branch is a link", func(t *testing.T, r, _ repo) { link(t, r, "/etc/passwd", branch) }, git.Damaged, true},
		{"branch is a fifo", func(t *testing.T, r, _ repo) {
			remove(t, r, branch)
			if err := syscall.Mkfifo(filepath.Join(r.dir, branch), 0o600); err != nil {
				t.Fatal(err)
			}
		}, git.Damaged, true},
		{"branch is huge", func(_ *testing.T, r, _ repo) { r.write(branch, strings.Repeat("a", 1<<20)) }, git.Oversized, true},
		{"branch is an option", func(_ *testing.T, r, _ repo) { r.write(branch, "--upload-pack=touch\n") }, git.Damaged, true},
		{"branch is symbolic", func(_ *testing.T, r, _ repo) { r.write(branch, "ref: refs/heads/../../../../../x\n") }, git.Damaged, true},
		{"branch deleted", func(_ *testing.T, r, _ repo) {
			r.git("checkout", "-q", "--detach")
			r.git("branch", "-D", "forge/t")
		}, git.Damaged, true},
		{"branch names nothing", func(_ *testing.T, r, _ repo) { r.write(branch, strings.Repeat("12", 20)+"\n") }, git.Damaged, true},
		{"objects deleted", func(t *testing.T, r, _ repo) {
			r.git("commit", "-qam", "work")
			r.write("a", "more\n")
			remove(t, r, ".git/objects/"+string(r.head("HEAD^{tree}"))[:2])
		}, git.Damaged, true},
		{"objects corrupted", func(t *testing.T, r, _ repo) {
			r.git("commit", "-qam", "work")
			o := string(r.head("HEAD:a"))
			p := ".git/objects/" + o[:2] + "/" + o[2:]
			remove(t, r, p)
			r.write(p, "garbage")
			r.write("a", "more\n")
		}, git.Damaged, true},
		{"history rewritten", func(_ *testing.T, r, _ repo) {
			r.git("commit", "-qam", "work", "--amend")
			r.write("a", "more\n")
		}, git.Rewritten, true},
		{"unrelated history", func(_ *testing.T, r, _ repo) {
			r.git("update-ref", "refs/heads/forge/t", r.git("commit-tree", "-m", "root", "HEAD^{tree}"))
		}, git.Rewritten, true},
		{"back to before the start", func(_ *testing.T, r, _ repo) { r.git("update-ref", "refs/heads/forge/t", "HEAD^") }, git.Rewritten, true},
		{"merge", func(_ *testing.T, r, _ repo) {
			r.git("update-ref", "refs/heads/forge/t", r.git("commit-tree", "-m", "evil", "-p", "HEAD", "-p", "HEAD^", "HEAD^{tree}"))
		}, git.Merged, true},
		{"graft hides the start", func(_ *testing.T, r, _ repo) {
			root := r.git("commit-tree", "-m", "root", "HEAD^{tree}")
			r.write(".git/info/grafts", root+" "+r.git("rev-parse", "HEAD")+"\n")
			r.git("update-ref", "refs/heads/forge/t", root)
		}, git.Rewritten, true},
		{"replace hides the start", func(_ *testing.T, r, _ repo) {
			root := r.git("commit-tree", "-m", "root", "HEAD^{tree}")
			r.git("update-ref", "refs/heads/forge/t", root)
			r.git("update-ref", "refs/replace/"+root, r.git("commit-tree", "-m", "fake", "-p", "HEAD", "HEAD^{tree}"))
		}, git.Rewritten, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a": "zero\n"})
			base := r.commit("second", map[string]string{"a": "a\n"})
			p := newPool(t, r.store())
			c, agent := prepare(t, p, "t", base)
			agent.write("a", "work\n")
			tc.do(t, agent, r)
			got, err := c.Collect(t.Context(), attempt("t"))
			var w *git.WorkError
			if !errors.As(err, &w) || w.Fault != tc.fault {
				t.Fatalf("error %v", err)
			}
			if (got.Leftover != "") != tc.leftover {
				t.Fatalf("leftover %q", got.Leftover)
			}
			if r.head("main") != base || r.git("status", "--porcelain") != "" {
				t.Fatal("the person's repository changed")
			}
			if tc.leftover && !strings.Contains(r.git("for-each-ref", "--format=%(objectname)", "refs/forge/intent/t/1/"), string(got.Leftover)) {
				t.Fatal("the leftover is not kept")
			}
			r.git("fsck", "--strict")
			if _, again := prepare(t, p, "t", base); again.git("status", "--porcelain") != "" || again.read("a") != "a\n" {
				t.Fatal("prepare did not repair it")
			}
		})
	}
}

func TestCollectRefusesUnsafePaths(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		do    func(r repo)
		fault git.Fault
		path  string
	}{
		{"link out", func(r repo) { r.link("../../x", "l") }, git.Unsafe, "l"},
		{"absolute link", func(r repo) { r.link("/etc/passwd", "l") }, git.Unsafe, "l"},
		{"link through a link", func(r repo) { r.link("d", "m"); r.link("m/../../x", "l") }, git.Unsafe, "l"},
		{"link to .git", func(r repo) { r.link(".git/config", "l") }, git.Unsafe, "l"},
		{".forge", func(r repo) { r.write(".forge/task.yaml", "x\n"); r.git("add", "-f", ".forge/task.yaml") }, git.Unsafe, ".forge/task.yaml"},
		{"removed again", func(r repo) {
			r.link("/etc/passwd", "l")
			r.git("add", "l")
			r.git("commit", "-qm", "in between")
			r.git("rm", "-q", "l")
		}, git.Unsafe, "l"},
		{"gitlink", func(r repo) {
			r.git("update-index", "--add", "--cacheinfo", "160000,"+string(r.head("HEAD"))+",sub")
		}, git.Unsafe, "sub"},
		{"huge", func(r repo) { r.write("big", strings.Repeat("0", 2<<20)) }, git.Oversized, "big"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a": "a\n", "d/b": "b\n"})
			p, err := checkout.NewPool(t.Context(), checkout.PoolConfig{
				Dir: filepath.Join(t.TempDir(), "w"), Store: r.store(), Limits: objects.Limits{Blob: 1 << 20},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { must(t, p.Close()) }()
			c, agent := prepare(t, p, "t", r.head("main"))
			tc.do(agent)
			if tc.name != ".forge" && tc.name != "gitlink" && tc.name != "removed again" { // git add -A would not
				if _, err := c.CommitAll(t.Context(), "all", git.Identity{}); !isFault(err, tc.fault, tc.path) {
					t.Errorf("commit all: %v", err)
				}
				agent.git("add", "-A")
			}
			agent.git("commit", "-qm", "work")
			got, err := c.Collect(t.Context(), attempt("t"))
			if !isFault(err, tc.fault, tc.path) || got.Ref == "" || r.head(got.Ref) != got.Head {
				t.Fatalf("collect: %+v, %v", got, err)
			}
		})
	}
}

// A tree that git add would refuse, made with plumbing.
func TestCollectRefusesGitLookalikes(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	p := newPool(t, r.store())
	for _, name := range []string{".GIT", "git~1", ".git ", ".g\u200cit"} {
		c, agent := prepare(t, p, "t", r.head("main"))
		agent.write("more", "x\n")
		blob := agent.git("hash-object", "-w", "more")
		inner := agent.mktree("100755 blob " + blob + "\tpost-checkout\n")
		tree := agent.mktree("040000 tree " + inner + "\t" + name + "\n")
		agent.git("update-ref", "refs/heads/forge/t", agent.git("commit-tree", "-m", "x", "-p", "HEAD", tree))
		_, err := c.Collect(t.Context(), attempt("t"))
		var w *git.WorkError
		if !errors.As(err, &w) || w.Fault != git.Unsafe && w.Fault != git.Damaged {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func isFault(err error, f git.Fault, path string) bool {
	var w *git.WorkError
	return errors.As(err, &w) && w.Fault == f && w.Path == path
}
