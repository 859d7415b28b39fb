package git_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

// Lists show the beginning of an error, so git's own words come before the long command.
func TestErrorSaysTheCauseFirst(t *testing.T) {
	t.Parallel()
	args := []string{"push", "--porcelain", "--force-with-lease=refs/heads/main:" + strings.Repeat("a", 40), "/srv/shop.git"}
	command := "git " + strings.Join(args, " ")
	for _, tt := range []struct {
		err  git.Error
		want string
	}{
		{git.Error{Args: args, ExitCode: 1, Stderr: "remote: protected branch\n"}, "git push: exit 1: remote: protected branch\n(" + command + ")"},
		{git.Error{Args: args, ExitCode: 1}, command + ": exit 1"},
		{git.Error{Args: args, ExitCode: -1, Err: context.Canceled}, "git push: context canceled\n(" + command + ")"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
}

func TestMachineFailed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{&git.Error{ExitCode: 128, Stderr: "error: unable to write file f\nfatal: unable to write loose object file: No space left on device"}, true},
		{&git.Error{ExitCode: 128, Stderr: "fatal: write error: Disk quota exceeded"}, true},
		{&git.Error{ExitCode: -1, Err: context.Canceled}, true},
		{errors.New("fork: resource temporarily unavailable"), true},
		{&git.Error{ExitCode: 128, Stderr: "fatal: Unable to process path .GIT/config"}, false},
	} {
		if got := git.MachineFailed(fmt.Errorf("stage: %w", tt.err)); got != tt.want {
			t.Errorf("%v: got %v", tt.err, got)
		}
	}
}

// A disk that is full while an agent's files are saved is no fault of its work, which
// would be thrown away. The disk here is a git that says so.
func TestFullDiskIsNoFaultOfTheWork(t *testing.T) {
	r := newRepo(t, map[string]string{"a": "a\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	agent.write("a", "b\n")
	program, err := exec.LookPath("git")
	must(t, err)
	bin := t.TempDir()
	script := "#!/bin/sh\n" +
		"case \" $* \" in *\" update-index \"*) echo 'fatal: unable to write loose object file: No space left on device' >&2; exit 128;; esac\n" +
		"exec " + program + " \"$@\"\n"
	must(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755))
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+path)
	_, err = c.Collect(t.Context(), attempt("t"))
	if _, fault := errors.AsType[*git.WorkError](err); err == nil || fault || !strings.Contains(err.Error(), "No space left") {
		t.Errorf("got %v", err)
	}
	t.Setenv("PATH", path)
	if got, err := c.Collect(t.Context(), attempt("t")); err != nil || got.Leftover == "" {
		t.Errorf("with room again: %+v, %v", got, err)
	}
}

// TestUnstarted: git that is not there, or lacks processes or descriptors here, says
// nothing of the repository. What a server says that lacks them is not about this machine.
func TestUnstarted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"not installed":    {&git.Error{ExitCode: -1, Err: &exec.Error{Name: "git", Err: exec.ErrNotFound}}, true},
		"no fork":          {&git.Error{ExitCode: -1, Err: &fs.PathError{Op: "fork/exec", Path: "/usr/bin/git", Err: syscall.EAGAIN}}, true},
		"no helper":        {&git.Error{ExitCode: 128, Stderr: "error: cannot fork() for remote-https: Resource temporarily unavailable\n"}, true},
		"no file":          {&git.Error{ExitCode: 128, Stderr: "fatal: unable to open x: Too many open files\n"}, true},
		"none there":       {&git.Error{ExitCode: 128, Stderr: "remote: fatal: cannot fork(): Resource temporarily unavailable\nfatal: early EOF\n"}, false},
		"a conflict":       {&git.Error{ExitCode: 1, Stderr: "CONFLICT (content)\n"}, false},
		"stopped":          {&git.Error{ExitCode: -1, Err: context.Canceled}, false},
		"nothing of git's": {errors.New("too many open files"), false},
	} {
		if got := git.Unstarted(c.err); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestUnwritten: a disk that is full here is known by git's words and by the error of our own
// writing, and what a server says of its disk is not taken for that.
func TestUnwritten(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&git.Error{ExitCode: 128, Stderr: "error: unable to create x: No space left on device\n"}, true},
		{&git.Error{ExitCode: 128, Stderr: "fatal: cannot write: Disk quota exceeded\n"}, true},
		{&git.Error{ExitCode: 1, Stderr: "remote: fatal: write error: No space left on device\nerror: failed to push some refs\n"}, false},
		{&git.Error{ExitCode: 128, Stderr: "fatal: remote error: No space left on device\n"}, false},
		{&git.Error{ExitCode: 1, Stderr: "To x\n ! [remote rejected] a -> a (No space left on device)\n"}, false},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOSPC}, true},
		{fmt.Errorf("keep it: %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.EROFS}), true},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, false},
		{&git.Error{ExitCode: 128, Stderr: "fatal: bad object\n"}, false},
		{nil, false},
	} {
		if got := git.Unwritten(c.err); got != c.want {
			t.Errorf("Unwritten(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}
