package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// confined returns a shell that sees the system, its directory and its home alone.
func confined(t *testing.T, script string) Command {
	t.Helper()
	c := shell(t, script)
	home := ""
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, "HOME="); ok {
			home = v
		}
	}
	c.Sandbox = &sandbox.Spec{Mounts: slices.Concat(sandbox.System(os.Getenv("PATH"), "/root"),
		sandbox.Path(c.Dir, sandbox.Writable), sandbox.Path(filepath.Dir(home), sandbox.Writable))}
	return c
}

// offered reports whether the machine lets us have sandboxes. Where it does not, a
// command that asks for one must not be run at all.
func offered(t *testing.T) bool {
	t.Helper()
	err := Probe(t.Context(), sandbox.NetworkFull)
	if err == nil {
		return true
	}
	t.Logf("there is no sandbox here: %v", err)
	c := confined(t, "touch ran")
	if _, runErr := Run(t.Context(), c); !errors.Is(err, ErrSandbox) || !errors.Is(runErr, ErrSandbox) {
		t.Errorf("probe: %v; run: %v", err, runErr)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "ran")); err == nil {
		t.Error("a command runs without the sandbox that it should have")
	}
	return false
}

// TestSandboxInSharedMemory works in a directory below /dev/shm, and sees nothing else of
// the machine's.
func TestSandboxInSharedMemory(t *testing.T) {
	t.Parallel()
	if !offered(t) {
		return
	}
	const memory = "/dev/shm"
	dir, err := os.MkdirTemp(memory, "pfl-forge-test-") //nolint:usetesting // that would be elsewhere
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := confined(t, "echo x > made; ls "+memory)
	c.Dir = dir
	c.Sandbox.Mounts = append(c.Sandbox.Mounts, sandbox.Path(dir, sandbox.Writable)...)
	var seen []string
	c.Line = func(_ Stream, line []byte) { seen = append(seen, string(line)) }
	if r, err := Run(t.Context(), c); err != nil || r.ExitCode != 0 {
		t.Fatalf("code %d, %v\n%s", r.ExitCode, err, r.Output)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil || !slices.Equal(seen, []string{filepath.Base(dir)}) {
		t.Errorf("%v; in %s it sees %q", err, memory, seen)
	}
}

// TestNoOverlayBeginsEmpty: where the file system cannot carry an overlay, a layer shows
// nothing of the directories below it, takes what is written, and writes nothing to
// them. The kernel refuses every overlay whose directory for its own work is missing.
func TestNoOverlayBeginsEmpty(t *testing.T) {
	t.Parallel()
	if !offered(t) {
		return
	}
	below, layer := t.TempDir(), filepath.Join(t.TempDir(), "layer")
	errs := []error{os.WriteFile(filepath.Join(below, "old"), []byte("old\n"), 0o600), os.Mkdir(layer, 0o700)}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	c := confined(t, "ls -A /cache; echo new >/cache/new && echo evil >/cache/old && cat /cache/new")
	c.Sandbox.Mounts = append(c.Sandbox.Mounts, sandbox.Mount{Path: "/cache", Kind: sandbox.Layered, To: layer, Below: []string{below}})
	if r := run(t, c); r.ExitCode != 0 || string(r.Output) != "new\n" {
		t.Errorf("code %d, and it finds\n%s", r.ExitCode, r.Output)
	}
	if data, err := os.ReadFile(filepath.Join(layer, "old")); err != nil || string(data) != "evil\n" {
		t.Errorf("the layer has %q, %v", data, err)
	}
	if data, err := os.ReadFile(filepath.Join(below, "old")); err != nil || string(data) != "old\n" {
		t.Errorf("below it is %q, %v", data, err)
	}
	entries, err := os.ReadDir(below)
	if err != nil || len(entries) != 1 {
		t.Errorf("below it are %v, %v", entries, err)
	}
}

// TestForkBomb starts processes until it is kept from it.
func TestForkBomb(t *testing.T) {
	const script = `i=0; while [ $i -lt 2000 ]; do sleep 600 & i=$((i+1)); done; echo all of them`
	if LimitedBy() == "" {
		t.Log("nothing limits processes here: they end with the command all the same")
	}
	c := shell(t, script)
	if offered(t) {
		c = confined(t, script)
		c.Sandbox.Processes = 400
	}
	r, err := Run(t.Context(), c)
	if err != nil && !errors.Is(err, ErrWall) {
		t.Errorf("%v\n%s", err, r.Output)
	}
	if limited := !strings.Contains(string(r.Output), "all of them"); limited != (c.Sandbox != nil && LimitedBy() != "") {
		t.Errorf("limited: %v\n%s", limited, r.Output)
	}
	if left := living(c.Dir); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// TestControlGroup limits a command that has no sandbox, where there are groups for us.
func TestControlGroup(t *testing.T) {
	c := shell(t, "cat /proc/self/cgroup")
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	g := newCgroup(&c, "none-test")
	defer g.remove()
	if in := strings.Contains(string(r.Output), "pfl-forge-none-"); in != (g != nil) {
		t.Errorf("a group can be made: %v; the command is in one: %v\n%s", g != nil, in, r.Output)
	}
	if g == nil {
		return
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	machine := uint64(info.Totalram) * uint64(info.Unit) //nolint:unconvert // types differ by architecture
	for _, dir := range g.dirs {
		for _, name := range []string{"memory.max", "memory.limit_in_bytes"} {
			most, err := strconv.ParseUint(strings.TrimSpace(text(filepath.Join(dir, name))), 10, 64)
			if err == nil && most > machine/4*3 {
				t.Errorf("%s: %d bytes are more than three quarters of the machine's memory", dir, most)
			}
		}
	}
	g.remove()
	for _, dir := range g.dirs {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("the group %s is left", dir)
		}
	}
}
