package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// sleeper is a script that notes its process id and sleeps.
const sleeper = `sh -c 'echo $$ >> pids; exec sleep 600'`

// hostile are scripts that try to leave something behind: each writes the ids
// of what it leaves to the file pids, count of them, and ends or goes on.
var hostile = []struct {
	name   string
	script string
	count  int
}{
	{"background", sleeper + " &", 1},
	{"background keeps the pipes", sleeper + " & echo started", 1},
	{"ignores signals", `sh -c 'trap "" TERM HUP INT; echo $$ >> pids; while :; do sleep 0.1; done' &`, 1},
	{"new session", "setsid " + sleeper + " &", 1},
	{"double fork", "(setsid sh -c '(" + quoted(sleeper) + " &)' &)", 1},
	{"daemon without pipes", "setsid " + sleeper + " </dev/null >/dev/null 2>&1 &", 1},
	{"daemon without environment", "env -i setsid " + sleeper + " </dev/null >/dev/null 2>&1 &", 1},
	{"stopped", "setsid sh -c 'echo $$ >> pids; kill -STOP $$' &", 1},
	{"many", "for i in 1 2 3 4 5 6 7 8 9 10; do setsid " + sleeper + " & done", 10},
	{"fork loop", `cat > loop.sh <<'END'
echo $$ >> pids
[ "$1" -ge 200 ] && exit
setsid sh loop.sh $(($1 + 1)) &
setsid sleep 600
END
setsid sh loop.sh 1 &`, 20},
}

func quoted(s string) string { return strings.ReplaceAll(s, "'", `'"'"'`) }

// noted is a script that waits until that many ids are noted.
func noted(n int) string {
	return `while [ "$(cat pids 2>/dev/null | wc -l)" -lt ` + strconv.Itoa(n) + ` ]; do sleep 0.01; done`
}

// endings are the ways in which a command ends that started something hostile.
var endings = []struct {
	name   string
	script string // after the hostile one
	limits Limits
	check  func(Report, error) bool
}{
	{"success", "", Limits{}, func(r Report, err error) bool { return err == nil && r.ExitCode == 0 }},
	{"failure", "exit 3", Limits{}, func(r Report, err error) bool { return err == nil && r.ExitCode == 3 }},
	{"time-out", "sleep 600", Limits{Wall: 300 * time.Millisecond}, func(_ Report, err error) bool { return errors.Is(err, ErrWall) }},
	{"idle", "sleep 600", Limits{Idle: 300 * time.Millisecond}, func(_ Report, err error) bool { return errors.Is(err, ErrIdle) }},
	{"cancel", "echo all up; sleep 600", Limits{}, func(_ Report, err error) bool { return errors.Is(err, context.Canceled) }},
}

// confinements are with and without a sandbox.
var confinements = []struct {
	name string
	make func(*testing.T, string) Command
}{{"bare", shell}, {"sandbox", confined}}

// TestNothingIsLeft runs each hostile script to each end, bare and in a sandbox.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, in := range confinements {
		if in.name == "sandbox" && !offered(t) {
			continue
		}
		for _, tt := range testsize.First(5, hostile) {
			for _, end := range endings {
				t.Run(in.name+"/"+tt.name+"/"+end.name, func(t *testing.T) {
					t.Parallel()
					c := in.make(t, tt.script+"\n"+noted(tt.count)+"\n"+end.script)
					if end.limits.Wall > 0 || end.limits.Idle > 0 {
						c.Limits = end.limits
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					c.Line = func(_ Stream, line []byte) {
						if string(line) == "all up" {
							cancel()
						}
					}
					r, err := Run(ctx, c)
					if !end.check(r, err) || errors.Is(err, ErrSurvivors) {
						t.Errorf("code %d, %v\n%s", r.ExitCode, err, r.Output)
					}
					if left := living(c.Dir); len(left) > 0 {
						t.Errorf("processes %v are left", left)
					}
				})
			}
		}
	}
}

// TestSupervisorKilled has a command kill what supervises it.
func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	script := "setsid " + sleeper + " & " + noted(1) + "; kill -9 $PPID; echo $?"
	c := shell(t, script+"; sleep 600")
	if _, err := Run(t.Context(), c); err == nil {
		t.Error("the death of a supervisor is not reported")
	}
	mustBeGone(t, c.Dir)
	if !offered(t) {
		return
	}
	c = confined(t, script+"; kill -TERM 1; kill -QUIT 1; kill -9 -1; exit 7")
	if r, err := Run(t.Context(), c); err != nil || r.ExitCode != 137 && r.ExitCode != 7 {
		t.Errorf("in a sandbox: %d, %v\n%s", r.ExitCode, err, r.Output)
	}
	mustBeGone(t, c.Dir)
}

// TestFloodIsEnded prints without end and without a newline.
func TestFloodIsEnded(t *testing.T) {
	t.Parallel()
	c := shell(t, "setsid "+sleeper+" & "+noted(1)+"; cat /dev/zero")
	c.Limits.OutputBytes = 100 << 20
	c.Limits.LineBytes = 1 << 20
	longest := 0
	c.Line = func(_ Stream, line []byte) { longest = max(longest, len(line)) }
	r, err := Run(t.Context(), c)
	if !errors.Is(err, ErrOutput) || r.Bytes != c.Limits.OutputBytes {
		t.Errorf("%d bytes, %v", r.Bytes, err)
	}
	if longest > c.Limits.LineBytes || len(r.Output) > 1<<20 {
		t.Errorf("line of %d bytes, kept %d bytes", longest, len(r.Output))
	}
	mustBeGone(t, c.Dir)
}

// TestServiceKilled kills the service, which is this test's executable again, as
// nothing can prepare for. Whoever gets the lock of its state afterwards must find
// nothing running.
func TestServiceKilled(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"bare", "sandbox"} {
		if mode == "sandbox" && !offered(t) {
			continue
		}
		for i := range hostile {
			t.Run(mode+"/"+hostile[i].name, func(t *testing.T) {
				t.Parallel()
				state, work := t.TempDir(), t.TempDir()
				service := startService(t, state, work, mode, i)
				kill(t, service.Process.Pid)
				lock := lockState(t, state)
				defer lock.Close()
				if left := living(work); len(left) > 0 {
					t.Errorf("processes %v run beside the next life", left)
				}
			})
		}
	}
}

func lockState(t *testing.T, state string) *os.File {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(state, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for {
		switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); {
		case err == nil:
			return lock
		case !errors.Is(err, syscall.EINTR):
			t.Fatal(err)
		}
	}
}

// TestSweepFindsTheFormerLife kills the service and its supervisor.
func TestSweepFindsTheFormerLife(t *testing.T) {
	t.Parallel()
	state, work := t.TempDir(), t.TempDir()
	service := startService(t, state, work, "bare", 0)
	supervisors := descendants(service.Process.Pid)
	for _, pid := range supervisors[:1] {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, service.Process.Pid)
	if err := syscall.Kill(supervisors[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if n, err := NewOwner(t.TempDir()).Sweep(t.Context()); n != 0 || err != nil {
		t.Fatalf("another owner's sweep killed %d, %v", n, err)
	}
	n, err := NewOwner(state).Sweep(t.Context())
	if err != nil || n == 0 {
		t.Errorf("killed %d, %v", n, err)
	}
	mustBeGone(t, work)
}

// TestMain lets the executable be a service that runs a command.
func TestMain(m *testing.M) {
	if state := os.Getenv("TEST_SERVICE_STATE"); state != "" {
		service(state, os.Getenv("TEST_SERVICE_WORK"), os.Getenv("TEST_SERVICE_MODE"), os.Getenv("TEST_SERVICE_SCRIPT"))
	}
	if which := os.Getenv("TEST_PROBES"); which != "" {
		makeProbes(which)
	}
	if calls := os.Getenv("TEST_SYSTEM_CALLS"); calls != "" {
		makeCalls()
	}
	if kind := os.Getenv("TEST_DELEGATED"); kind != "" {
		inDelegatedGroup(kind)
	}
	if kind := os.Getenv("TEST_GROUPS"); kind != "" {
		withoutGroups(kind)
	}
	if dir := os.Getenv("TEST_STARVED"); dir != "" {
		starved(dir)
	}
	goleak.VerifyTestMain(m)
}

func service(state, work, mode, script string) {
	lock, err := os.OpenFile(filepath.Join(state, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil || syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) != nil {
		os.Exit(1)
	}
	i, _ := strconv.Atoi(script)
	c := Command{
		Path: "sh", Args: []string{"-c", hostile[i].script + "\n" + noted(hostile[i].count) + "; echo up; sleep 600"},
		Dir: work, Env: Environment(work), Owner: NewOwner(state),
		Line: func(_ Stream, line []byte) {
			if string(line) == "up" {
				_, _ = os.Stdout.WriteString("up\n")
			}
		},
	}
	c.Owner.Hold(lock)
	if pulse, err := time.ParseDuration(os.Getenv("TEST_SERVICE_PULSE")); err == nil {
		c.Owner.EndWhenStopped(pulse)
	}
	if mode == "sandbox" {
		spec := sandbox.Spec{Mounts: append(sandbox.System(os.Getenv("PATH"), work), sandbox.Path(work, sandbox.Writable)...)}
		c.Sandbox = &spec
	}
	_, err = Run(context.Background(), c)
	_, _ = fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func startService(t *testing.T, state, work, mode string, script int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "TEST_SERVICE_STATE="+state, "TEST_SERVICE_WORK="+work,
		"TEST_SERVICE_MODE="+mode, "TEST_SERVICE_SCRIPT="+strconv.Itoa(script))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
		t.Fatalf("service says %q, %v", line, err)
	}
	return cmd
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// mustBeGone fails unless some process noted its id in dir, and all that work there
// end.
func mustBeGone(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	pids := strings.Fields(string(data))
	if err != nil || len(pids) == 0 {
		t.Fatalf("nothing was started; %v", err)
	}
	defer func() {
		for _, pid := range living(dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	wait.Until(t, "no process is left", func() bool { return len(living(dir)) == 0 })
}

// living returns the processes that work in a directory, in whatever namespace.
func living(dir string) []int {
	var out []int
	for _, pid := range processes() {
		if running(pid, dir) {
			out = append(out, pid)
		}
	}
	return out
}

// running reports whether the process lives and works in dir.
func running(pid int, dir string) bool {
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return err == nil && cwd == dir && !zombie(pid)
}
