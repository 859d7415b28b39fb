package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// MaxOutput bounds the output of a command whose caller sets no other
	// limit, in bytes, and what is read in the place of such a command.
	MaxOutput = 64 << 20
	maxStderr = 4 << 10
	// killDelay is the time from the polite signal to the hard one.
	killDelay = 3 * time.Second
)

// Command configures one git call. The zero value of each field is the default.
type Command struct {
	// Dir is the working directory.
	Dir string
	// GitDir is GIT_DIR. It is empty only while a repository is being
	// discovered.
	GitDir string
	// Env is added to the hermetic environment, as KEY=VALUE.
	Env []string
	// Config is configuration for this command, as key=value.
	Config []string
	// Personal has the person's own configuration apply, which their own
	// working tree needs.
	Personal bool
	Stdin    io.Reader
	// Stdout gets the output; the call then returns no bytes. Nil for returned
	// bytes.
	Stdout io.Writer
	// Limit bounds the returned bytes; above it the call fails with
	// ErrTooLarge.
	Limit int
	// Hold has locks that must stay held until git has exited, even if this
	// process dies.
	Hold []*os.File
}

// Run executes git and returns its standard output. Any other exit code than 0 is an *Error.
func Run(ctx context.Context, c Command, args ...string) ([]byte, error) {
	limit := c.Limit
	if limit == 0 {
		limit = MaxOutput
	}
	out := &capped{limit: limit}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out.full = cancel
	cmd := c.prepare(ctx, args)
	cmd.Stdout = out
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	stderr := &tail{limit: maxStderr}
	cmd.Stderr = stderr
	err := cmd.Run()
	if cmd.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if out.over {
		return out.buf.Bytes(), &Error{Args: args, ExitCode: -1, Err: ErrTooLarge}
	}
	if err == nil {
		return out.buf.Bytes(), nil
	}
	return nil, commandError(ctx, args, stderr, err)
}

// commandError returns the error of a command: that of ctx if it ended, or else
// an *Error.
func commandError(ctx context.Context, args []string, stderr *tail, err error) error {
	e := &Error{Args: args, ExitCode: -1, Stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	case errors.As(err, &exit):
		e.ExitCode = exit.ExitCode()
	default:
		e.Err = err
	}
	return e
}

// prepare makes the process in a group of its own, so that a terminal's Ctrl-C does not reach
// it and cancellation reaches its children. SIGTERM first: git then removes its lock files.
func (c Command) prepare(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", c.arguments(args)...)
	cmd.Dir = c.Dir
	cmd.Env = c.environment()
	cmd.Stdin = c.Stdin
	cmd.ExtraFiles = c.Hold
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = killDelay
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}

// ExitCode returns the exit code of a failed command, or -1.
func ExitCode(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.ExitCode
	}
	return -1
}

// Stderr returns the standard error of a failed command.
func Stderr(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Stderr
	}
	return ""
}

// capped keeps the first limit bytes and stops the command when more come.
type capped struct {
	buf   bytes.Buffer
	limit int
	over  bool
	full  func()
}

// Write keeps as many bytes as there is room for. With the first byte too many it says that it is
// full, and takes the rest without keeping it, so that git is not held up.
func (w *capped) Write(p []byte) (int, error) {
	if room := w.limit - w.buf.Len(); len(p) > room {
		w.buf.Write(p[:room])
		w.over = true
		w.full()
		return len(p), nil
	}
	return w.buf.Write(p)
}

// tail keeps the last limit bytes.
type tail struct {
	b     []byte
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if extra := len(t.b) - t.limit; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(bytes.ToValidUTF8(t.b, []byte("?"))) }
