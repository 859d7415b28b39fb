package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// noBomb is why a test of memory is skipped, which CI counts as a failure: limits
// that were not tried are not known to hold. There it runs as root where control
// groups of version 1 are mounted, or where those of version 2 are delegated to us.
const noBomb = "no sandbox, or no control group with a limit of memory, can be had here: nothing is tried"

// memoryGroup makes a control group with that much memory, of cgroup version 1
// or 2; "" if the machine lets us have none.
func memoryGroup(t *testing.T, bytes int) string {
	t.Helper()
	for line := range strings.Lines(text("/proc/self/cgroup")) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		parent, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		if fields[0] == "0" {
			parent, limit = "/sys/fs/cgroup", "memory.max"
		} else if fields[1] != "memory" {
			continue
		}
		dir := filepath.Join(parent, fields[2], "pfl-forge-memory-"+strconv.Itoa(os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			wait.Until(t, "the group is removed", func() bool {
				return os.Remove(dir) == nil || text(dir+"/cgroup.procs") == "" && os.IsNotExist(os.Remove(dir))
			})
		})
		if os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(bytes)), 0) == nil {
			return dir
		}
	}
	return ""
}

// TestMemoryBomb has a command in a sandbox take all memory of a control group of 200 MB, in
// which another command works: the first is ended and that is reported, the second goes on.
func TestMemoryBomb(t *testing.T) {
	if !offered(t) {
		t.Skip(noBomb)
	}
	group := memoryGroup(t, 200<<20)
	if group == "" {
		t.Skip(noBomb)
	}
	const begins = "while [ ! -e go ]; do sleep 0.01; done; "
	bomb := confined(t, begins+"tail /dev/zero; echo tail ended with $?; exit 9")
	innocent := confined(t, begins+"touch began; while [ ! -e end ]; do sleep 0.01; done; echo whole")
	done := make(chan Report)
	go func() {
		r, err := Run(t.Context(), innocent)
		if err != nil {
			t.Errorf("the other command: %v", err)
		}
		done <- r
	}()
	bombed := make(chan Report)
	go func() {
		r, err := Run(t.Context(), bomb)
		if err != nil {
			t.Errorf("the bomb: %v", err)
		}
		bombed <- r
	}()
	for _, c := range []*Command{&innocent, &bomb} {
		joined := map[int]bool{}
		wait.Until(t, "the command is in the group", func() bool {
			for _, pid := range living(c.Dir) {
				if os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0) == nil {
					joined[pid] = true
				}
			}
			return len(joined) > 0
		})
		touch(t, filepath.Join(c.Dir, "go"))
	}
	r := <-bombed
	if out := string(r.Output); r.ExitCode != 137 && (r.ExitCode != 9 || !strings.Contains(out, "ended with 137")) {
		t.Errorf("the bomb ended with %d\n%s", r.ExitCode, out)
	}
	touch(t, filepath.Join(innocent.Dir, "end"))
	if r := <-done; r.ExitCode != 0 || string(r.Output) != "whole\n" {
		t.Errorf("the other command ended with %d\n%s", r.ExitCode, r.Output)
	}
}

// TestMemoryLimit has a command take more memory than it may have: the kernel
// ends what took it, at that limit and not at the machine's, and the command is
// reported. Beside it another one has a limit of its own.
func TestMemoryLimit(t *testing.T) {
	probe := &Command{}
	g := newCgroup(probe, "none-memory")
	limited := g != nil && slices.Contains(g.limits, memoryController)
	g.remove()
	if !limited || !offered(t) {
		t.Skip(noBomb)
	}
	// Head of a pipe keeps what it has no use for: the shell's variable grows
	// to 300 MB where it may.
	const grow = "x=$(head -c 300000000 /dev/zero | tr '\\0' a); echo ended with $? and ${#x}"
	small := confined(t, "("+grow+"); echo after")
	small.Limits.MemoryBytes = 150 << 20
	r, err := Run(t.Context(), small)
	if err != nil {
		t.Errorf("the command with a limit: %v", err)
	}
	if out := string(r.Output); strings.Contains(out, "and 300000000") || !strings.Contains(out, "after") && r.ExitCode != 137 {
		t.Errorf("with a limit of 150 MiB it ends with %d: %s", r.ExitCode, out)
	}
	large := confined(t, "("+grow+"); echo after")
	if r, err := Run(t.Context(), large); err != nil || !strings.Contains(string(r.Output), "and 300000000") {
		t.Errorf("without one: %d, %v\n%s", r.ExitCode, err, r.Output)
	}
}

// TestRanOut: where the kernel ended the supervisor as well, the groups tell
// that the command had no memory left.
func TestRanOut(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                     false,
		"low 0\noom 3\noom_kill 0\n":           false,
		"low 0\noom 3\noom_kill 2\n":           true,
		"oom_group_kill 1\n":                   false,
		"oom_kill_disable 0\nunder_oom 1\n":    false,
		"oom_kill_disable 0\noom_kill 1\n":     true,
		"oom_kill_disable 1\nunder_oom 0 \n\n": false,
	} {
		for _, name := range []string{"memory.events", "memory.oom_control"} {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := (&cgroup{dirs: []string{dir}}).ranOut(); got != want {
				t.Errorf("%s %q: %t", name, text, got)
			}
		}
	}
	var none *cgroup
	if none.ranOut() {
		t.Error("without a group")
	}
}

// touch makes an empty file.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
