package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
)

func shell(t *testing.T, command string) agent.Shell {
	t.Helper()
	return agent.Shell{Command: command, Dir: t.TempDir(), ScratchDir: t.TempDir(), Env: []string{"X=from env"}}
}

func TestRunShell(t *testing.T) {
	s := shell(t, `echo "$X"; printf '\033[31mred\r\n' >&2; exit 2`)
	var events []string
	s.Sink = func(e agent.Event) { events = append(events, string(e.Kind)+" "+e.Text) }
	res, err := agent.RunShell(t.Context(), s)
	if err != nil || res.ExitCode != 2 || res.OK() || res.Output != "from env\nred\n" || res.Bytes != 19 {
		t.Errorf("%+v, %v", res, err)
	}
	if diff := cmp.Diff([]string{"output from env", "output red"}, events); diff != "" {
		t.Error(diff)
	}
}

func TestRunShellHandsOutStdout(t *testing.T) {
	s := shell(t, "echo raw; echo err >&2")
	var lines []string
	s.Stdout = func(line []byte) { lines = append(lines, string(line)) }
	if res, err := agent.RunShell(t.Context(), s); err != nil || !strings.Contains(res.Output, "err") {
		t.Errorf("%+v, %v", res, err)
	}
	if diff := cmp.Diff([]string{"raw"}, lines); diff != "" {
		t.Error(diff)
	}
}

func TestRunShellFailures(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name   string
		change func(*agent.Shell)
		want   forge.FailureReason
	}{
		{"idle", func(s *agent.Shell) { s.Limits.Idle = 100 * time.Millisecond }, forge.FailIdle},
		{"flood", func(s *agent.Shell) { s.Command, s.Limits.OutputBytes = "yes", 1000 }, forge.FailOutputLimit},
		{"cancelled", func(*agent.Shell) {}, forge.FailKilled},
		{"no directory", func(s *agent.Shell) { s.Dir += "/gone" }, forge.FailCrashed},
		{"no scratch", func(s *agent.Shell) { s.ScratchDir = "relative" }, forge.FailRepository},
		{"no command", func(s *agent.Shell) { s.Command = "" }, forge.FailConfig},
	} {
		s := shell(t, "echo begun; sleep 60")
		tt.change(&s)
		ctx := t.Context()
		if tt.want == forge.FailKilled {
			ctx = ended
		}
		_, err := agent.RunShell(ctx, s)
		var f *agent.Failure
		if !errors.As(err, &f) || f.Reason != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// TestRunShellTimeout: a command that takes longer than it may says what it has printed until then.
func TestRunShellTimeout(t *testing.T) {
	s := shell(t, "echo begun; sleep 60")
	// On a busy machine the shorter times are over before it has begun.
	for s.Limits.Wall = 100 * time.Millisecond; s.Limits.Wall < time.Minute; s.Limits.Wall *= 2 {
		_, err := agent.RunShell(t.Context(), s)
		var f *agent.Failure
		if !errors.As(err, &f) || f.Reason != forge.FailTimeout {
			t.Fatalf("got %v, want %s", err, forge.FailTimeout)
		}
		if strings.HasSuffix(f.Message, "\nbegun") {
			return
		}
	}
	t.Error("the output is missing")
}

func TestAsFailure(t *testing.T) {
	if f := agent.AsFailure(nil); f != nil {
		t.Errorf("no error is %v", f)
	}
	if f := agent.AsFailure(errors.New("odd \x1b[31m")); f.Reason != forge.FailCrashed || f.Message != "odd " {
		t.Errorf("got %q", f)
	}
	// Each bound that ends a command has a reason of its own, here and for the
	// pods of commands; a full disk is no bound of it.
	for err, want := range map[error]forge.FailureReason{
		process.ErrWall: forge.FailTimeout, process.ErrIdle: forge.FailIdle, process.ErrOutput: forge.FailOutputLimit,
		process.ErrDisk: forge.FailDiskLimit, process.ErrLost: forge.FailLost,
	} {
		if f := agent.AsFailure(fmt.Errorf("sh %w (16 MiB)", err)); f.Reason != want || !strings.Contains(f.Message, "(16 MiB)") {
			t.Errorf("%v is %v, want %s", err, f, want)
		}
	}
	own := agent.FailUntil(forge.FailQuota, time.Unix(1, 0), "spent")
	if f := agent.AsFailure(errors.Join(errors.New("x"), own)); f != own || f.Error() != "quota: spent" {
		t.Errorf("got %v", f)
	}
}
