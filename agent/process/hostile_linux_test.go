package process

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
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
	{"kills its supervisor", "setsid " + sleeper + " & " + wait(1) + "; kill -9 $PPID; sleep 600", 1},
}

func quoted(s string) string { return strings.ReplaceAll(s, "'", `'"'"'`) }

// wait is a script that waits until that many ids are noted.
func wait(n int) string {
	return `while [ "$(cat pids 2>/dev/null | wc -l)" -lt ` + strconv.Itoa(n) + ` ]; do sleep 0.01; done`
}

func TestNothingIsLeftAfterTheEnd(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := shell(t, tt.script+"\n"+wait(tt.count))
			r, err := Run(t.Context(), c)
			if tt.name == "kills its supervisor" {
				if err == nil {
					t.Error("the death of a supervisor is not reported")
				}
			} else if err != nil || r.ExitCode != 0 {
				t.Errorf("code %d, %v\n%s", r.ExitCode, err, r.Output)
			}
			if r.Duration > 8*time.Second {
				t.Errorf("took %s", r.Duration)
			}
			mustBeGone(t, c.Dir, tt.count)
		})
	}
}

func TestNothingIsLeftAfterCancel(t *testing.T) {
	for _, tt := range hostile {
		if tt.name == "kills its supervisor" {
			continue // it is over before anybody cancels
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := shell(t, tt.script+"\n"+wait(tt.count)+"\necho all up\nsleep 600")
			c.Line = func(_ Stream, line []byte) {
				if string(line) == "all up" {
					cancel()
				}
			}
			if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) || errors.Is(err, ErrSurvivors) {
				t.Errorf("got %v", err)
			}
			mustBeGone(t, c.Dir, tt.count)
		})
	}
}

// TestFloodIsEnded prints without end and without a newline.
func TestFloodIsEnded(t *testing.T) {
	c := shell(t, "setsid "+sleeper+" & "+wait(1)+"; cat /dev/zero")
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
	mustBeGone(t, c.Dir, 1)
}

// TestServiceKilled kills the service, which is this test's executable again,
// as nothing can prepare for.
func TestServiceKilled(t *testing.T) {
	state, work := t.TempDir(), t.TempDir()
	service := startService(t, state, work)
	kill(t, service.Process.Pid)
	mustBeGone(t, work, 2)
}

// TestSweepFindsTheFormerLife kills the service and its supervisor.
func TestSweepFindsTheFormerLife(t *testing.T) {
	state, work := t.TempDir(), t.TempDir()
	service := startService(t, state, work)
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
	mustBeGone(t, work, 2)
}

// TestMain lets the executable be a service that runs a command.
func TestMain(m *testing.M) {
	if state := os.Getenv("TEST_SERVICE_STATE"); state != "" {
		service(state, os.Getenv("TEST_SERVICE_WORK"))
	}
	goleak.VerifyTestMain(m)
}

func service(state, work string) {
	_, _ = Run(context.Background(), Command{
		Path: "sh", Args: []string{"-c", "setsid " + sleeper + " & " + sleeper + " & " + wait(2) + "; echo up; sleep 600"},
		Dir: work, Env: Environment(work), Owner: NewOwner(state),
		Line: func(_ Stream, line []byte) { _, _ = os.Stdout.Write(append(line, '\n')) },
	})
	os.Exit(1)
}

func startService(t *testing.T, state, work string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "TEST_SERVICE_STATE="+state, "TEST_SERVICE_WORK="+work)
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

// mustBeGone fails unless at least count processes noted their id in dir, and
// all of them end within seconds.
func mustBeGone(t *testing.T, dir string, count int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	pids := strings.Fields(string(data))
	if err != nil || len(pids) < count {
		t.Fatalf("%d processes were started, want %d; %v", len(pids), count, err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			continue // written by two at once
		}
		for tick := time.Tick(5 * time.Millisecond); running(pid, dir); <-tick {
			if time.Now().After(deadline) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Errorf("process %d is left", pid)
				break
			}
		}
	}
}

// running reports whether the process lives and works in dir: its id may have
// been given to another one since.
func running(pid int, dir string) bool {
	cwd, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	return err == nil && cwd == dir && !zombie(pid)
}
