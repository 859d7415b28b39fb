package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
)

// TestStarved: a service that has no descriptor left for another process is told so by an error of
// its own; what a command lacks that did start is its own, and a missing directory lacks nothing.
func TestStarved(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "TEST_STARVED="+testdir.New(t))
	out, err := cmd.CombinedOutput()
	want := "with room: true 0\na command with none: false 7\nwithout: true\nwith room again: true 0\n"
	if got := string(out); err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	for err, want := range map[error]bool{
		fmt.Errorf("%w: %w", ErrSandbox, &startError{"clone", syscall.EAGAIN}): true,
		&startError{"fork/exec sh: no such file or directory", 0}:              false,
		ErrSandbox: false, os.ErrNotExist: false, context.Canceled: false,
	} {
		if Starved(err) != want {
			t.Errorf("%v: want %t", err, want)
		}
	}
}

// starved is the other process of TestStarved: it closes its door to more
// descriptors, and opens it again.
func starved(dir string) {
	try := func(what, script string) {
		c := Command{Path: "sh", Args: []string{"-c", script}, Dir: dir, Env: Environment(dir), Owner: NewOwner(dir), MergeStderr: true}
		r, err := Run(context.Background(), c)
		if r.ExitCode >= 0 {
			_, _ = fmt.Fprintln(os.Stdout, what+":", err == nil && !Starved(err) && script == ":", r.ExitCode)
			return
		}
		_, _ = fmt.Fprintln(os.Stdout, what+":", Starved(err))
	}
	try("with room", ":")
	try("a command with none", "(ulimit -n 3; cat /dev/null) || exit 7")
	var was unix.Rlimit
	open, err := os.ReadDir("/proc/self/fd")
	if err == nil {
		err = unix.Getrlimit(unix.RLIMIT_NOFILE, &was)
	}
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open)), Max: was.Max})
	}
	try("without", ":")
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		os.Exit(1)
	}
	try("with room again", ":")
	os.Exit(0)
}
