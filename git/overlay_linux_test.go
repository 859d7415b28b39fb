package git_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/git"
)

// permitted says whether checkouts are overlay mounts here. Where they are not, the tests below hold all the same.
func permitted(t *testing.T) bool {
	t.Helper()
	return git.ProbeOverlay(t.TempDir()) == nil
}

// mounted says whether something is mounted at a directory.
func mounted(t *testing.T, dir string) bool {
	t.Helper()
	var at, above unix.Stat_t
	must(t, unix.Lstat(dir, &at))
	must(t, unix.Lstat(filepath.Dir(dir), &above))
	return at.Dev != above.Dev
}

// mountsIn lists what is mounted below a directory.
func mountsIn(t *testing.T, dir string) []string {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	must(t, err)
	var found []string
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			found = append(found, f[4])
		}
	}
	return found
}

// trees lists what checkouts are mounted over.
func trees(t *testing.T, dir string) []string {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(dir, ".base"))
	must(t, err)
	var found []string
	for _, e := range all {
		found = append(found, filepath.Join(dir, ".base", e.Name(), "files"))
	}
	return found
}

// work does in a checkout what agents do, and check says whether all of that is there.
func work(agent repo) (check func(repo) error) {
	agent.t.Helper()
	agent.write("a", "changed\n")
	agent.write("new/file", "new\n")
	agent.git("mv", "dir", "moved")
	must(agent.t, os.Rename(filepath.Join(agent.dir, "x"), filepath.Join(agent.dir, "renamed")))
	must(agent.t, os.RemoveAll(filepath.Join(agent.dir, "gone")))
	agent.write("gone/instead", "instead\n")
	agent.git("add", "-A")
	agent.git("commit", "-qm", "work")
	agent.write("a", "not committed\n")
	want := agent.files()
	status := agent.git("status", "--porcelain")
	return func(r repo) error {
		if got := r.files(); !slices.Equal(got, want) {
			return fmt.Errorf("files %q, want %q", got, want)
		}
		if got := r.git("status", "--porcelain"); got != status || r.read("a") != "not committed\n" || r.read("moved/deep/c") != "c\n" {
			return fmt.Errorf("status %q, want %q", got, status)
		}
		return nil
	}
}

var workFiles = map[string]string{
	"a": "a\n", "dir/b": "b\n", "dir/deep/c": "c\n", "x/y": "y\n", "gone/z": "z\n", "gone/deep/z": "z\n", ".gitignore": "*.log\n",
}

func TestOverlayCheckouts(t *testing.T) {
	r := newRepo(t, workFiles)
	dir := filepath.Join(t.TempDir(), "w")
	p := poolAt(t, r.store(), dir)
	base := r.head("main")
	one, first := prepare(t, p, "one", base)
	other, second := prepare(t, p, "two", base)
	if got := mounted(t, one.Dir()); got != permitted(t) {
		t.Fatalf("mounted: %v", got)
	}
	clean := func(r repo) {
		t.Helper()
		if out := r.git("status", "--porcelain", "--ignored"); out != "" || r.read("a") != "a\n" || r.read("dir/deep/c") != "c\n" {
			t.Errorf("not clean: %s", out)
		}
	}
	clean(first)
	clean(second)
	check := work(first)
	must(t, check(first))
	clean(second)
	got, err := one.Collect(t.Context(), attempt("one"))
	if err != nil || got.Commits != 1 || got.Leftover == "" || r.git("show", string(got.Leftover)+":a") != "not committed" {
		t.Fatalf("%+v, %v", got, err)
	}
	if out := r.git("ls-tree", "-r", "--name-only", string(got.Head)); out != strings.Join(first.files(), "\n") {
		t.Errorf("collected %q", out)
	}
	if commit, err := one.CommitAll(t.Context(), "the rest", git.Identity{}); err != nil || first.git("status", "--porcelain") != "" ||
		first.git("rev-parse", "HEAD") != string(commit) {
		t.Error(err)
	}
	must(t, one.WriteFile("task.md", []byte("do it")))
	must(t, one.Release())
	if exists(one.Dir()) || len(mountsIn(t, one.Dir())) > 0 {
		t.Error("the checkout is still there")
	}
	clean(second)
	_, third := prepare(t, p, "three", base)
	clean(third)
	view, err := p.View(t.Context(), "view", base)
	must(t, err)
	clean(r.at(view.Dir()))
	must(t, other.Release())
	must(t, p.Close())
	if left := mountsIn(t, dir); len(left) > 0 {
		t.Errorf("mounts are left: %q", left)
	}
	must(t, os.RemoveAll(dir))
}

// A tree never changes while a task is on it; another one takes over, and disk use does not grow.
func TestOverlayFollowsTheBase(t *testing.T) {
	r := newRepo(t, workFiles)
	dir := filepath.Join(t.TempDir(), "w")
	p := poolAt(t, r.store(), dir)
	held, agent := prepare(t, p, "held", r.head("main"))
	for n := range 6 {
		want := fmt.Sprintf("%d\n", n)
		tip := r.commit("moved", map[string]string{"a": want, fmt.Sprintf("n%d", n): "n\n"})
		p.Follow(tip)
		must(t, p.Idle(t.Context()))
		c, next := prepare(t, p, "t", tip)
		if out := next.git("status", "--porcelain", "--ignored"); out != "" || next.read("a") != want || mounted(t, c.Dir()) != permitted(t) {
			t.Fatalf("round %d: %s", n, out)
		}
		if out := agent.git("status", "--porcelain", "--ignored"); out != "" || agent.read("a") != "a\n" {
			t.Fatalf("round %d: changed below a task: %s", n, out)
		}
		next.write("a", "mine\n")
		must(t, c.Release())
	}
	if n := len(trees(t, dir)); n > 3 {
		t.Errorf("%d trees", n)
	}
	must(t, held.Release())
	must(t, p.Close())
	if n := len(trees(t, dir)); n > 2 {
		t.Errorf("%d trees at the end", n)
	}
	off := poolWith(t, r.store(), git.PoolConfig{Dir: dir, Plain: true})
	must(t, off.Close())
	if n := len(trees(t, dir)); n > 0 {
		t.Errorf("%d trees are kept for nobody", n)
	}
}

// An agent that is not confined can write where checkouts are mounted over: that is found before another task starts there.
func TestOverlayTreeIsTampered(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(tree string) error
	}{
		{"file planted", func(tree string) error { return os.WriteFile(filepath.Join(tree, "planted"), nil, 0o600) }},
		{"repository planted", func(tree string) error { return os.Mkdir(filepath.Join(tree, "dir", ".git"), 0o700) }},
		{"file changed", func(tree string) error { return os.WriteFile(filepath.Join(tree, "dir", "b"), []byte("B\n"), 0o600) }},
		{"file gone", func(tree string) error { return os.RemoveAll(filepath.Join(tree, "x")) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepo(t, workFiles)
			dir := filepath.Join(t.TempDir(), "w")
			p := poolAt(t, r.store(), dir)
			base := r.head("main")
			prepare(t, p, "beside", base)
			c, _ := prepare(t, p, "t", base)
			for _, tree := range trees(t, dir) {
				must(t, tc.do(tree))
			}
			must(t, c.Release())
			for _, name := range []string{"next", "another"} {
				next, agent := prepare(t, p, name, base)
				if out := agent.git("status", "--porcelain", "--ignored"); out != "" || agent.read("dir/b") != "b\n" || exists(filepath.Join(next.Dir(), "dir/.git")) {
					t.Errorf("it reached another task: %s", out)
				}
				if got := mounted(t, next.Dir()); got != permitted(t) {
					t.Errorf("mounted: %v", got)
				}
			}
		})
	}
}

// A commit that no tree is of is checked out in place, and a checkout of one kind becomes one of the other.
func TestOverlayFallsBack(t *testing.T) {
	r := newRepo(t, workFiles)
	dir := filepath.Join(t.TempDir(), "w")
	p := poolAt(t, r.store(), dir)
	old := r.head("main")
	tip := r.commit("moved", map[string]string{"a": "tip\n"})
	for n, at := range []git.OID{old, tip, old, tip} {
		p.Follow(tip)
		c, err := p.Prepare(t.Context(), "t", at)
		must(t, err)
		agent := r.at(c.Dir())
		if out := agent.git("status", "--porcelain", "--ignored"); out != "" || string(agent.head("HEAD")) != string(at) {
			t.Errorf("%d: not clean: %s", n, out)
		}
		if got := mounted(t, c.Dir()); got != (permitted(t) && at == tip) {
			t.Errorf("%d: mounted: %v", n, got)
		}
		work(agent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	next := r.commit("more", map[string]string{"a": "more\n"})
	p.Follow(next)
	if _, err := p.Prepare(ctx, "u", next); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// After a restart, of the service or of the machine, a task finds what it left.
func TestOverlayAfterRestart(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, dir string, base git.OID)
	}{
		{"service", func(*testing.T, string, git.OID) {}},
		{"machine, files lost", func(t *testing.T, dir string, base git.OID) {
			for _, tree := range trees(t, dir) {
				must(t, os.WriteFile(filepath.Join(filepath.Dir(tree), "at.json"), []byte(`{"at":"`+string(base)+`","boot":"other"}`), 0o600))
				must(t, os.WriteFile(filepath.Join(tree, "dir", "deep", "c"), nil, 0o600))
			}
		}},
		{"tree lost", func(t *testing.T, dir string, _ git.OID) { must(t, os.RemoveAll(filepath.Join(dir, ".base"))) }},
		{"mount point lost", func(t *testing.T, dir string, _ git.OID) {
			if permitted(t) {
				must(t, os.Remove(filepath.Join(dir, "t")))
			}
		}},
		{"switched off", func(*testing.T, string, git.OID) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepo(t, workFiles)
			dir := filepath.Join(t.TempDir(), "w")
			p := poolAt(t, r.store(), dir)
			base := r.head("main")
			c, agent := prepare(t, p, "t", base)
			prepare(t, p, "same", base)
			check := work(agent)
			got, err := c.Collect(t.Context(), attempt("t"))
			must(t, err)
			must(t, p.Close())
			tc.do(t, dir, base)
			r.commit("moved", map[string]string{"a": "moved\n"})
			p = poolWith(t, r.store(), git.PoolConfig{Dir: dir, Plain: tc.name == "switched off"})
			again, err := p.Reopen("t", got.Head)
			must(t, err)
			must(t, check(r.at(again.Dir())))
			_, err = p.Recover("t")
			must(t, err)
			same, err := p.Recover("same")
			must(t, err)
			if out := r.at(same.Dir()).git("status", "--porcelain"); out != "" {
				t.Errorf("changed: %s", out)
			}
			second, err := again.Collect(t.Context(), git.Attempt{Intent: "intent", Task: "t", Number: 2})
			if err != nil || second.Head != got.Head || second.Leftover == "" {
				t.Errorf("%+v, %v", second, err)
			}
			must(t, p.Sweep(func(string) bool { return false }))
			must(t, p.Close())
		})
	}
}

func init() { victims["hold"] = victimHolds } //nolint:gochecknoinits // of this system's tests alone

func victimHolds(dir string, args []string) {
	pool := args[0]
	ctx := context.Background()
	s, err := git.OpenLocal(ctx, git.LocalConfig{Path: dir})
	fatal(err)
	p, err := git.NewPool(ctx, git.PoolConfig{Dir: pool, Store: s})
	fatal(err)
	head, err := s.Head(ctx, "main")
	fatal(err)
	p.Follow(head)
	for _, task := range []git.Name{"t", "other"} {
		c, err := p.Prepare(ctx, task, head)
		fatal(err)
		fatal(os.WriteFile(filepath.Join(c.Dir(), "left"), []byte("left\n"), 0o600))
		fatal(os.RemoveAll(filepath.Join(c.Dir(), "dir")))
	}
	fmt.Println("holding")
	_ = unix.Pause()
}

// Killed with checkouts mounted: they are unmounted, or by the next pool, and the tasks find their files again.
func TestKilledWithMounts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		keeper bool // is killed as well
		next   bool // there is a next pool
	}{{"alone", false, true}, {"with its keeper", true, true}, {"and no other comes", false, false}} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepo(t, workFiles)
			dir := filepath.Join(t.TempDir(), "w")
			v := startVictim(t, "hold", r.dir, dir)
			if !v.lines.Scan() || v.lines.Text() != "holding" {
				t.Fatal(v.lines.Text())
			}
			if got := mounted(t, filepath.Join(dir, "t")); got != permitted(t) {
				t.Fatalf("mounted: %v", got)
			}
			v.kill(tc.keeper)
			_ = v.cmd.Wait()
			if !tc.next {
				eventually(t, func() bool { return len(mountsIn(t, dir)) == 0 })
				must(t, os.RemoveAll(dir))
				return
			}
			p := poolAt(t, r.store(), dir)
			c, err := p.Recover("t")
			must(t, err)
			if n := len(mountsIn(t, dir)); permitted(t) && n != 2 {
				t.Errorf("%d mounts", n)
			}
			got, err := c.Collect(t.Context(), attempt("t"))
			if err != nil || r.git("ls-tree", "--name-only", string(got.Leftover)) != ".gitignore\na\ngone\nleft\nx" {
				t.Fatalf("%+v, %v", got, err)
			}
			must(t, p.Sweep(func(string) bool { return false }))
			if _, agent := prepare(t, p, "next", r.head("main")); agent.git("status", "--porcelain", "--ignored") != "" {
				t.Error("not clean")
			}
			must(t, p.Close())
			if left := mountsIn(t, dir); len(left) > 0 {
				t.Errorf("mounts are left: %q", left)
			}
		})
	}
}

func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); !cond(); <-tick {
		if time.Now().After(deadline) {
			t.Fatal("it never came to that")
		}
	}
}

// What an agent that may do everything can do to an overlay checkout does not reach the next task, nor what is outside.
func TestHostileInOverlay(t *testing.T) {
	outside := t.TempDir()
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, agent repo)
		root bool // needs what mounting needs
	}{
		{"deletes everything", func(t *testing.T, agent repo) {
			all, err := os.ReadDir(agent.dir)
			must(t, err)
			for _, e := range all {
				must(t, os.RemoveAll(filepath.Join(agent.dir, e.Name())))
			}
		}, false},
		{"whiteouts", func(_ *testing.T, agent repo) {
			for _, name := range []string{"dir/deep/w", "w"} {
				_ = unix.Mknod(filepath.Join(agent.dir, name), unix.S_IFCHR|0o600, 0) // refused in a mount
			}
		}, false},
		{"marks", func(_ *testing.T, agent repo) {
			for _, key := range []string{"opaque", "redirect", "metacopy", "origin"} {
				for _, value := range []string{"y", "/../../..", "/x"} {
					_ = unix.Setxattr(filepath.Join(agent.dir, "dir"), "trusted.overlay."+key, []byte(value), 0)
					_ = unix.Setxattr(filepath.Join(agent.dir, "a"), "trusted.overlay."+key, []byte(value), 0)
				}
			}
		}, false},
		{"mounts inside", func(t *testing.T, agent repo) {
			must(t, unix.Mount(outside, filepath.Join(agent.dir, "dir", "deep"), "", unix.MS_BIND, ""))
			must(t, unix.Mount(outside, filepath.Join(agent.dir, ".git"), "", unix.MS_BIND, ""))
		}, true},
		{"mounts where the service writes", func(t *testing.T, agent repo) {
			at := filepath.Join(agent.dir, ".forge", "task.md", "x")
			must(t, os.MkdirAll(at, 0o700))
			must(t, unix.Mount(outside, at, "", unix.MS_BIND, ""))
		}, true},
		{"mounts over it", func(t *testing.T, agent repo) { must(t, unix.Mount(outside, agent.dir, "", unix.MS_BIND, "")) }, true},
		{"unmounts it", func(t *testing.T, agent repo) { must(t, unix.Unmount(agent.dir, unix.MNT_DETACH)) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepo(t, workFiles)
			must(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("mine\n"), 0o600))
			p := newPool(t, r.store())
			base := r.head("main")
			c, agent := prepare(t, p, "t", base)
			_, beside := prepare(t, p, "beside", base)
			agent.write("planted", "x\n")
			agent.plant()
			if !tc.root || permitted(t) {
				tc.do(t, agent)
			}
			if tc.name == "mounts where the service writes" {
				must(t, c.WriteFile("task.md", []byte("do it\n")))
			}
			got, err := c.Collect(t.Context(), attempt("t"))
			if got.Leftover == "" {
				t.Fatalf("%+v, %v", got, err)
			}
			left := strings.Fields(r.git("ls-tree", "-r", "--name-only", string(got.Leftover)))
			outer := slices.ContainsFunc(left, func(p string) bool { return filepath.Base(p) == "precious" })
			if slices.Contains(left, "planted") == (tc.name == "deletes everything") || outer {
				t.Errorf("saved %q", left)
			}
			must(t, c.Release())
			if exists(c.Dir()) && mounted(t, c.Dir()) {
				t.Error("still mounted")
			}
			_, next := prepare(t, p, "next", base)
			for _, r := range []repo{next, beside} {
				if out := r.git("status", "--porcelain", "--ignored"); out != "" || r.read("dir/deep/c") != "c\n" || exists(filepath.Join(r.dir, "planted")) {
					t.Errorf("it reached another task: %s", out)
				}
			}
			if b, err := os.ReadFile(filepath.Join(outside, "precious")); string(b) != "mine\n" {
				t.Error("it reached what is outside", err)
			}
		})
	}
}

// A directory that something of the agent still works in is taken away all the same.
func TestReleaseOfABusyMount(t *testing.T) {
	r := newRepo(t, workFiles)
	p := newPool(t, r.store())
	c, agent := prepare(t, p, "t", r.head("main"))
	f, err := os.Create(filepath.Join(agent.dir, "open"))
	must(t, err)
	defer f.Close()
	dir, err := os.Open(filepath.Join(agent.dir, "dir"))
	must(t, err)
	defer dir.Close()
	must(t, c.Release())
	if _, next := prepare(t, p, "t", r.head("main")); next.git("status", "--porcelain", "--ignored") != "" {
		t.Error("not clean")
	}
	if _, err := f.WriteString("late\n"); err != nil && !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
}
