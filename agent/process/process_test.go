package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// shell returns a command that runs a script in a directory of its own.
func shell(t *testing.T, script string) Command {
	t.Helper()
	home, err := PrivateHome(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Command{
		Path: "sh", Args: []string{"-c", script}, Dir: t.TempDir(),
		Env: Environment(home), Limits: Limits{Wall: 3 * time.Minute},
	}
}

func run(t *testing.T, c Command) Report {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Output)
	}
	return r
}

func TestRunReportsExitAndOutput(t *testing.T) {
	t.Parallel()
	c := shell(t, "cat; echo err >&2; exit 3")
	c.Stdin = []byte("from stdin\n")
	r := run(t, c)
	if r.ExitCode != 3 || string(r.Stderr) != "err\n" || !bytes.Contains(r.Output, []byte("from stdin\n")) {
		t.Errorf("code %d, stderr %q, output %q", r.ExitCode, r.Stderr, r.Output)
	}
	if r := run(t, shell(t, "kill -9 $$")); r.ExitCode != 137 {
		t.Errorf("killed by itself: code %d, want 137", r.ExitCode)
	}
}

func TestRunMergesStderrInOrder(t *testing.T) {
	t.Parallel()
	c := shell(t, "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
	c.MergeStderr = true
	want := "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"
	if r := run(t, c); string(r.Output) != want || len(r.Stderr) != 0 {
		t.Errorf("output %q, want %q", r.Output, want)
	}
}

func TestRunPassesOnlyTheGivenEnvironment(t *testing.T) {
	t.Setenv("SERVICE_SECRET", "canary")
	c := shell(t, "env")
	c.Env = Merge(c.Env, []string{"FROM=foo bar", "LANG=C"})
	out := string(run(t, c).Output)
	for _, want := range []string{"FROM=foo bar\n", "LANG=C\n", "TERM=dumb\n", MarkerVariable + "=none-"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	var names []string
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"FORGE_RUN_ID", "FROM", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_TERMINAL_PROMPT",
		"HOME", "LANG", "NO_COLOR", "PATH", "PWD", "TERM", "TMPDIR",
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "OLDPWD" || n == "SHLVL" || n == "_" })
	if !slices.Equal(names, want) {
		t.Errorf("environment holds %q, want %q", names, want)
	}
}

func TestRunRefusesWhatCannotStart(t *testing.T) {
	t.Parallel()
	missing := shell(t, "")
	missing.Path = "no-such-command-anywhere"
	if _, err := Run(t.Context(), missing); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("missing executable: %v", err)
	}
	nowhere := shell(t, "true")
	nowhere.Dir = filepath.Join(nowhere.Dir, "gone")
	if _, err := Run(t.Context(), nowhere); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("missing directory: %v", err)
	}
	garbage := shell(t, "")
	garbage.Path = filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage.Path, []byte("\x7fELF but not really"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), garbage); err == nil || !strings.Contains(err.Error(), "exec format error") {
		t.Errorf("garbage executable: %v", err)
	}
}

func TestRunEndsAtItsLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script string
		limits       Limits
		want         error
	}{
		{"wall", "while :; do echo tick; sleep 0.02; done", Limits{Wall: 200 * time.Millisecond}, ErrWall},
		{"wall against trap", "trap '' TERM INT HUP; while :; do sleep 0.02; done", Limits{Wall: 200 * time.Millisecond}, ErrWall},
		{"idle", "echo once; sleep 60", Limits{Idle: 200 * time.Millisecond}, ErrIdle},
		{"output", "yes", Limits{OutputBytes: 1 << 20}, ErrOutput},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := shell(t, tt.script)
			c.Limits = tt.limits
			r, err := Run(t.Context(), c)
			if !errors.Is(err, tt.want) || r.ExitCode != -1 {
				t.Errorf("code %d, %v; want %v", r.ExitCode, err, tt.want)
			}
			if r.Duration > wait.Patience {
				t.Errorf("took %s", r.Duration)
			}
		})
	}
}

func TestRunAllowsExactlyTheLimit(t *testing.T) {
	t.Parallel()
	c := shell(t, "head -c 65536 /dev/zero")
	c.Limits.OutputBytes = 65536
	if r := run(t, c); r.Bytes != 65536 || r.ExitCode != 0 {
		t.Errorf("%d bytes, code %d", r.Bytes, r.ExitCode)
	}
	c = shell(t, "head -c 65536 /dev/zero; sleep 0.05; printf x; sleep 600")
	c.Limits.OutputBytes = 65536
	if r, err := Run(t.Context(), c); !errors.Is(err, ErrOutput) || r.Bytes != 65536 {
		t.Errorf("%d bytes, %v", r.Bytes, err)
	}
}

func TestRunsAtOnce(t *testing.T) {
	t.Parallel()
	var group errgroup.Group
	for i := range 20 {
		c := shell(t, fmt.Sprintf("echo %d; sleep 0.05; exit %d", i, i))
		group.Go(func() error {
			r, err := Run(t.Context(), c)
			if err != nil || r.ExitCode != i || string(r.Output) != fmt.Sprintf("%d\n", i) {
				return fmt.Errorf("command %d: code %d, output %q, %w", i, r.ExitCode, r.Output, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// TestIdleWatchSeesOutput has output come just before the limit of silence, many times, and
// then none. The clock is the test's, because a busy machine has pauses of its own.
func TestIdleWatchSeesOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancelCause(t.Context())
		out := newOutputCapture(Command{Limits: Limits{Idle: time.Second, OutputBytes: 100, LineBytes: 100}}, stop)
		defer out.close()
		for range 20 {
			<-wait.Briefly(t, 999*time.Millisecond).Done()
			if _, err := out.stderr().Write([]byte(".")); err != nil || ctx.Err() != nil {
				t.Fatal(err, context.Cause(ctx))
			}
		}
		<-wait.Briefly(t, 1001*time.Millisecond).Done()
		if cause := context.Cause(ctx); !errors.Is(cause, ErrIdle) {
			t.Errorf("silence for longer than allowed: %v", cause)
		}
	})
}

func TestRunStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	c := shell(t, "echo ready; sleep 60")
	why := errors.New("nobody wants it any more")
	c.Line = func(Stream, []byte) { cancel(why) }
	if _, err := Run(ctx, c); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if _, err := Run(ctx, shell(t, "touch ran")); !errors.Is(err, why) {
		t.Errorf("an ended context: %v", err)
	}
}

func TestRunHandsOutLines(t *testing.T) {
	t.Parallel()
	c := shell(t, `echo one; head -c 400000 /dev/zero | tr '\0' x; echo; echo; printf last`)
	c.Limits.LineBytes = 300_000
	var lines []string
	c.Line = func(_ Stream, line []byte) { lines = append(lines, string(line)) }
	run(t, c)
	want := []string{"one", strings.Repeat("x", 300_000), "", "last"}
	if !slices.Equal(lines, want) {
		t.Errorf("%d lines of lengths %v", len(lines), lengths(lines))
	}
}

func lengths(lines []string) (out []int) {
	for _, l := range lines {
		out = append(out, len(l))
	}
	return out
}

func TestOutputKeepsItsEnds(t *testing.T) {
	t.Parallel()
	var e headTail
	for i := range 50_000 {
		e.add([]byte{byte('a' + i%26), '\n'})
	}
	got := e.bytes()
	if len(got) > headBytes+tailBytes+100 || !bytes.HasPrefix(got, []byte("a\nb\n")) {
		t.Fatalf("kept %d bytes, starting with %q", len(got), got[:10])
	}
	want := 100_000 - headBytes - tailBytes
	if !bytes.Contains(got, []byte(fmt.Sprintf("... %d bytes left out ...", want))) {
		t.Errorf("does not say that %d bytes are left out", want)
	}
	if last := byte('a' + 49_999%26); !bytes.HasSuffix(got, []byte{last, '\n'}) {
		t.Errorf("ends with %q, want %q", got[len(got)-2:], last)
	}
}
