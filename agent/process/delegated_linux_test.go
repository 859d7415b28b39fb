package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestDelegatedGroup is in a group of cgroup version 2 that has this process in it, as a unit of
// systemd with Delegate=yes has, on the real kernel: one that is ours passes controllers on, and
// processes are in leaves; one that others are in, too, stays as it is, and so does one of
// root's that nobody has delegated. Where the kernel offers no controller of memory to version
// 2, as beside version 1, another one is passed on, by the same rules, and no memory is limited.
func TestDelegatedGroup(t *testing.T) {
	for kind, want := range map[string]string{
		"ours": "delegated: true\npassed on: <nil>\nthis process, and what it has started: leaf, leaf\na leaf: true\nagain: <nil>\n" +
			"a command: group\nkilled, and its group is gone\na supervisor that leaves its group: leaf\n",
		"shared":   "delegated: true\npassed on: other processes are in the group\nthis process, and what it has started: above, above\na leaf: false\n",
		"unmarked": "delegated: false\n",
	} {
		t.Run(kind, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "TEST_DELEGATED="+kind, "TEST_WORK="+t.TempDir())
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			out, err := cmd.CombinedOutput()
			got := string(out)
			if errors.Is(err, syscall.EPERM) || strings.HasPrefix(got, "skip: ") {
				t.Skipf("there is no cgroup version 2 to try, or no right to: %v %s", err, got)
			}
			limited, _ := strings.CutPrefix(got, want)
			if err != nil || limited == got && want != got {
				t.Fatalf("%v\n%s\nwant\n%s", err, got, want)
			}
			switch {
			case kind == "ours" && strings.HasPrefix(limited, "memory: "):
				if !strings.HasPrefix(limited, "memory: 157286400, ended within it\n") {
					t.Errorf("a command with a limit of 150 MiB: %s", limited)
				}
			case limited != "":
				t.Errorf("got also %s", limited)
			}
		})
	}
}

// inDelegatedGroup is the other process of TestDelegatedGroup.
func inDelegatedGroup(kind string) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(os.Stdout, format, args...) }
	const root = "/sys/fs/cgroup"
	err := errors.Join(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), unix.Mount("groups", root, "cgroup2", 0, ""))
	offered := words(root, "cgroup.controllers")
	controller := "hugetlb"
	if slices.Contains(offered, memoryController) {
		controller = memoryController
	}
	if err != nil || !slices.Contains(offered, controller) {
		say("skip: %v, controllers %v", err, offered)
		os.Exit(0)
	}
	dir := filepath.Join(root, "pfl-forge-test-"+strconv.Itoa(os.Getpid()))
	was := slices.Contains(words(root, "cgroup.subtree_control"), controller)
	err = errors.Join(
		enable(root, []string{controller}), os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0),
	)
	if kind != "unmarked" {
		err = errors.Join(err, unix.Setxattr(dir, "user.delegate", []byte("1"), 0))
	}
	if err != nil {
		say("%v\n", err)
		os.Exit(1)
	}
	started := sleeping()
	other := 0
	if kind == "shared" {
		other = orphan()
	}
	say("delegated: %t\n", delegated(dir, "/"+filepath.Base(dir)))
	if kind != "unmarked" {
		say("passed on: %v\n", passOn(dir, controller, "none"))
		say("this process, and what it has started: %s, %s\n", whereIs(dir, os.Getpid()), whereIs(dir, started.Process.Pid))
		_, err := os.Stat(filepath.Join(dir, leafName))
		say("a leaf: %t\n", err == nil)
	}
	if kind == "ours" {
		say("again: %v\n", passOn(dir, controller))
		inLeaves(say, dir, started)
		if controller == memoryController {
			withMemory(say)
		}
	}
	_ = started.Process.Kill()
	_ = started.Wait()
	if other != 0 {
		_ = syscall.Kill(other, syscall.SIGKILL)
	}
	_ = os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte("0"), 0)
	ctx, cancel := wait.Bounded()
	if !wait.Poll(ctx, func() bool {
		_ = os.Remove(filepath.Join(dir, leafName))
		return os.Remove(dir) == nil
	}) {
		say("%s is left\n", dir)
	}
	cancel()
	if !was {
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("-"+controller), 0)
	}
	os.Exit(0)
}

// sleeping starts a process that does nothing.
func sleeping() *exec.Cmd {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}

// orphan starts a process in our group that is not of our making any more, and returns its id.
func orphan() int {
	out, err := exec.Command("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		panic(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		panic(err)
	}
	return pid
}

// whereIs returns in which group below dir a process is.
func whereIs(dir string, pid int) string {
	for line := range strings.Lines(text("/proc/" + strconv.Itoa(pid) + "/cgroup")) {
		path, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		switch name := filepath.Base(path); {
		case !unified:
		case name == leafName:
			return "leaf"
		case name == filepath.Base(dir):
			return "above"
		default:
			return "group"
		}
	}
	return "nowhere"
}

// inLeaves has a process in a group beside the leaf, as a command is.
func inLeaves(say func(string, ...any), dir string, command *exec.Cmd) {
	g := &cgroup{dirs: []string{filepath.Join(dir, "pfl-forge-none-test")}}
	err := errors.Join(os.Mkdir(g.dirs[0], 0o755), g.add(command.Process.Pid))
	if err != nil {
		say("%v\n", err)
	}
	say("a command: %s\n", whereIs(dir, command.Process.Pid))
	g.remove()
	_, gone := os.Stat(g.dirs[0])
	_ = command.Process.Signal(syscall.SIGTERM) // unless it was killed
	if err := command.Wait(); strings.Contains(fmt.Sprint(err), "killed") && errors.Is(gone, os.ErrNotExist) {
		say("killed, and its group is gone\n")
	}
	if err := errors.Join(os.Mkdir(g.dirs[0], 0o755), g.add(os.Getpid())); err != nil {
		say("%v\n", err)
	}
	leaveGroups(g.dirs)
	_, gone = os.Stat(g.dirs[0])
	if where := whereIs(dir, os.Getpid()); errors.Is(gone, os.ErrNotExist) {
		say("a supervisor that leaves its group: %s\n", where)
	} else {
		_ = os.WriteFile("/sys/fs/cgroup/cgroup.procs", []byte("0"), 0)
		_ = os.Remove(g.dirs[0])
	}
}

// withMemory has a command take more memory than it may have.
func withMemory(say func(string, ...any)) {
	dir := os.Getenv("TEST_WORK")
	c := Command{
		Path: "sh", Args: []string{"-c", "x=$(head -c 300000000 /dev/zero | tr '\\0' a); echo has ${#x}"}, Dir: dir, Env: Environment(dir),
		Owner: NewOwner(dir).Within(demand.Bounds{Memory: 150 << 20}), Limits: Limits{MemoryBytes: 150 << 20},
	}
	r, err := Run(context.Background(), c)
	if how := "ended within it"; err == nil && !strings.Contains(string(r.Output), "has 300000000") {
		say("memory: %d, %s\n", MemoryLimit(demand.Bounds{Memory: 150 << 20}), how)
	} else {
		say("memory: %q, %v\n", r.Output, err)
	}
}

// TestNothingIsPassedOnBesideProcesses: the kernel lets a group that has
// processes pass pids on, after which it can pass memory on no more. So as long
// as one is in the group nothing is written, and then all at once.
func TestNothingIsPassedOnBesideProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cgroup.controllers", "cpu memory pids\n")
	write("cgroup.type", "domain\n")
	write("cgroup.subtree_control", "")
	write("cgroup.procs", strconv.Itoa(os.Getpid())+"\n") // a directory that is no group keeps it
	if err := passOn(dir, pidsController, memoryController); !errors.Is(err, unix.EBUSY) || text(filepath.Join(dir, "cgroup.subtree_control")) != "" {
		t.Errorf("beside a process: %q, %v", text(filepath.Join(dir, "cgroup.subtree_control")), err)
	}
	write("cgroup.procs", "")
	if err := passOn(dir, pidsController, memoryController); err != nil || text(filepath.Join(dir, "cgroup.subtree_control")) != "+pids +memory" {
		t.Errorf("without: %q, %v", text(filepath.Join(dir, "cgroup.subtree_control")), err)
	}
}

// TestLimitsOfVersion2 makes the group of a command in directories that look
// like those of cgroup version 2: one of the version's own files has each
// limit, and where no controller is passed on there is no group.
func TestLimitsOfVersion2(t *testing.T) {
	c := &Command{Limits: Limits{MemoryBytes: 150 << 20}}
	for _, tt := range []struct {
		passes string
		want   map[string]string
	}{
		{"cpu memory pids\n", map[string]string{"memory.max": "157286400", "pids.max": "16384"}},
		{"memory\n", map[string]string{"memory.max": "157286400", "pids.max": ""}},
		{"cpu\n", nil},
		{"", nil},
	} {
		for _, own := range []string{"", leafName} {
			unit := t.TempDir()
			if err := errors.Join(
				os.WriteFile(filepath.Join(unit, "cgroup.subtree_control"), []byte(tt.passes), 0o600), os.MkdirAll(filepath.Join(unit, own), 0o755),
			); err != nil {
				t.Fatal(err)
			}
			parent := unifiedParent(filepath.Join(unit, own), "/unit")
			g := newCgroupIn([]cgroupParent{parent}, c, "none-test")
			if parent.dir != unit || g.limitsMemory() != (tt.want["memory.max"] != "") || (g == nil) != (tt.want == nil) {
				t.Errorf("%q, %q: groups are made in %s: %+v", tt.passes, own, parent.dir, g)
			}
			for name, want := range tt.want {
				if got := text(filepath.Join(unit, "pfl-forge-none-test", name)); got != want {
					t.Errorf("%q: %s has %q, want %q", tt.passes, name, got, want)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(unit, "pfl-forge-none-*")); tt.want == nil && len(left) > 0 {
				t.Errorf("%q: %v are left", tt.passes, left)
			}
		}
	}
}
