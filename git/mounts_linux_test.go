package git_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/git/checkout"
)

// mayMount skips a test where this process may not mount.
func mayMount(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("mounting is not permitted:", err)
		}
		t.Skip("mounting is not permitted:", err)
	}
	must(t, unix.Unmount(dir, unix.MNT_DETACH))
}

// mounted returns whether something is mounted at a directory or below it.
func mounted(t *testing.T, dir string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	return strings.Contains(string(table), " "+dir)
}

// What an agent with every privilege mounts in its checkout does not reach the
// next task, and what is outside stays.
func TestHostileMounts(t *testing.T) {
	t.Parallel()
	mayMount(t)
	outside := t.TempDir()
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, agent repo)
	}{
		{"inside", func(t *testing.T, agent repo) {
			must(t, unix.Mount(outside, filepath.Join(agent.dir, "dir", "deep"), "", unix.MS_BIND, ""))
			must(t, unix.Mount(outside, filepath.Join(agent.dir, ".git"), "", unix.MS_BIND, ""))
		}},
		{"where the service writes", func(t *testing.T, agent repo) {
			at := filepath.Join(agent.dir, ".forge", "task.md", "x")
			must(t, os.MkdirAll(at, 0o700))
			must(t, unix.Mount(outside, at, "", unix.MS_BIND, ""))
		}},
		{"over it", func(t *testing.T, agent repo) { must(t, unix.Mount(outside, agent.dir, "", unix.MS_BIND, "")) }},
	} {
		for _, back := range []string{"release", "park", "crash"} {
			t.Run(tc.name+", "+back, func(t *testing.T) {
				r := newRepo(t, map[string]string{"a": "a\n", "dir/b": "b\n", "dir/deep/c": "c\n"})
				must(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("mine\n"), 0o600))
				p := poolWith(t, r.store(), checkout.PoolConfig{Max: 1})
				base := r.head("main")
				c, agent := prepare(t, p, "t", base)
				agent.write("planted", "x\n")
				tc.do(t, agent)
				must(t, c.WriteFile("task.md", []byte("do it\n")))
				got, err := c.Collect(t.Context(), attempt("t"))
				if got.Leftover == "" {
					t.Fatalf("%+v, %v", got, err)
				}
				left := strings.Fields(r.git("ls-tree", "-r", "--name-only", string(got.Leftover)))
				outer := slices.ContainsFunc(left, func(p string) bool { return filepath.Base(p) == "precious" })
				if !slices.Contains(left, "planted") || outer {
					t.Errorf("saved %q", left)
				}
				if tc.name == "inside" { // again, after it was collected
					tc.do(t, agent)
				}
				switch back {
				case "release":
					must(t, c.Release())
				case "park":
					must(t, c.Park())
				case "crash":
					must(t, p.Close())
					p = poolWith(t, r.store(), checkout.PoolConfig{Dir: filepath.Dir(c.Dir()), Max: 1})
					must(t, p.Retire("t"))
				}
				if mounted(t, c.Dir()) {
					t.Error("still mounted")
				}
				_, next := prepare(t, p, "next", base)
				if out := next.git("status", "--porcelain", "--ignored"); out != "" || next.read("dir/deep/c") != "c\n" || exists(filepath.Join(next.dir, "planted")) {
					t.Errorf("it reached another task: %s", out)
				}
				if b, err := os.ReadFile(filepath.Join(outside, "precious")); string(b) != "mine\n" {
					t.Error("it reached what is outside", err)
				}
			})
		}
	}
}
