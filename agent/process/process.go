// Package process runs one command so that it cannot outlive, outgrow or
// outlast what it was allowed: limits of time and output, an environment from
// scratch, and no process of it left when Run returns, daemons included.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// Command is one command to run.
type Command struct {
	Path        string   // of the executable, or its name to find in the service's PATH
	Args        []string // without the name
	Dir         string   // to run in
	Env         []string // all of it: KEY=VALUE
	Stdin       []byte
	Owner       Owner // the service that runs it
	Limits      Limits
	Sandbox     *sandbox.Spec                  // what it sees of the machine; its own executable is added; nil means everything
	MergeStderr bool                           // stderr goes where stdout goes, which keeps their order
	Line        func(from Stream, line []byte) // receives each line, without its end; one at a time; it holds up the output; may be nil
}

// Limits ends a command. Zero values mean the defaults.
type Limits struct {
	Wall        time.Duration // from start to end; default 1h
	Idle        time.Duration // without output; default none
	OutputBytes int64         // default 64 MiB
	LineBytes   int           // longer lines are cut; default 8 MiB
}

// The defaults of Limits.
const (
	DefaultWall        = time.Hour
	DefaultOutputBytes = 64 << 20
	DefaultLineBytes   = 8 << 20
)

// Report is how a command ended.
type Report struct {
	ExitCode int           // 128+n if signal n ended it; -1 if it did not end by itself
	Output   []byte        // the first and last part of stdout and stderr together
	Stderr   []byte        // the first and last part of stderr; empty with MergeStderr
	Bytes    int64         // printed in all, up to the limit
	Duration time.Duration // wall clock
}

// Why Run ended a command.
var (
	ErrWall   = errors.New("took longer than allowed")
	ErrIdle   = errors.New("printed nothing for longer than allowed")
	ErrOutput = errors.New("printed more than allowed")
)

// ErrSurvivors is returned when processes could not be killed.
var ErrSurvivors = errors.New("left processes that cannot be killed")

// ErrSandbox is returned when a command's sandbox cannot be made, so that it was not started.
var ErrSandbox = errors.New("the sandbox cannot be made")

// killDelay is how long the end of a command's processes may take.
const killDelay = 10 * time.Second

// Run runs the command and returns when it and every process that it started
// are gone. The exit status is in the report; an error means that the command
// did not start, was ended (ErrWall, ErrIdle, ErrOutput, or the cause of ctx),
// or left something behind.
func Run(ctx context.Context, c Command) (Report, error) {
	if err := c.prepare(); err != nil {
		return Report{ExitCode: -1}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	out := newOutputCapture(c, stop)
	wall := time.AfterFunc(c.Limits.Wall, func() { stop(fmt.Errorf("%w (%s)", ErrWall, c.Limits.Wall)) })
	defer wall.Stop()

	started := time.Now()
	code, err := runTree(ctx, &c, out)
	out.close()
	report := out.report()
	report.ExitCode, report.Duration = code, time.Since(started)

	if cause := context.Cause(ctx); cause != nil {
		report.ExitCode = -1
		return report, errors.Join(fmt.Errorf("%s %w", filepath.Base(c.Path), cause), err)
	}
	return report, err
}

// prepare fills in defaults and finds the executable, so that a missing one is
// told apart from one that fails.
func (c *Command) prepare() error {
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return fmt.Errorf("%s cannot be run: %w", c.Path, err)
	}
	if c.Path, err = filepath.Abs(path); err != nil {
		return err
	}
	if info, err := os.Stat(c.Dir); err != nil {
		return fmt.Errorf("%s cannot be run: %w", c.Path, err)
	} else if !info.IsDir() {
		return fmt.Errorf("%s cannot be run in %s: it is not a directory", c.Path, c.Dir)
	}
	if c.Sandbox != nil {
		if !sandbox.Available {
			return fmt.Errorf("%w: it needs Linux", ErrSandbox)
		}
		spec := c.Sandbox.With(sandbox.Program(c.Path)...)
		c.Sandbox = &spec
	}
	if c.Limits.Wall <= 0 {
		c.Limits.Wall = DefaultWall
	}
	if c.Limits.OutputBytes <= 0 {
		c.Limits.OutputBytes = DefaultOutputBytes
	}
	if c.Limits.LineBytes <= 0 {
		c.Limits.LineBytes = DefaultLineBytes
	}
	return nil
}

// exitCode returns a status as a shell does.
func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
