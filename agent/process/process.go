// Package process runs one command within limits of time and output, in an environment
// made from scratch, and leaves no process of it behind, daemons included.
//
// Run is the entry point. On Linux it does not start the command itself, but a
// supervisor: this executable again, which starts the command and lives until all its
// descendants are gone (tree_linux.go is the service's side, supervisor_linux.go the
// other). Thus a command's daemons are found, and everything dies when the service
// does. With a sandbox.Spec the supervisor is process 1 of new namespaces. Elsewhere
// (tree_unix.go) only the process group is killed.
//
// Every process of a command carries a mark in its environment. After a crash,
// Owner.Sweep finds by it the processes that the previous process of the same service
// left running.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// Command describes one command to run.
type Command struct {
	// Path is the executable's path, or a name to find in the service's PATH.
	Path string
	// Args excludes the program's name.
	Args []string
	// Dir is the directory to run in. It must exist.
	Dir string
	// Env is the complete environment, as KEY=VALUE; see Environment.
	Env []string
	// Stdin is the command's input; nil means none.
	Stdin []byte
	// Owner is the service that runs the command.
	Owner  Owner
	Limits Limits
	// Sandbox limits which files and networks the command reaches; its own executable
	// is added. Nil means all of the machine's.
	Sandbox *sandbox.Spec
	// MergeStderr sends stderr to the same pipe as stdout, which keeps their order.
	MergeStderr bool
	// Line receives each line without its end, one at a time. It delays the command
	// while it runs. May be nil.
	Line func(from Stream, line []byte)
}

// Limits ends a command. Zero values mean the defaults.
type Limits struct {
	// Wall is the time from start to end; the default is an hour.
	Wall time.Duration
	// Idle is the longest time without output; by default there is no such limit.
	Idle time.Duration
	// MemoryBytes bounds the memory of all its processes together, where there are control
	// groups for us on this machine; the default is three quarters of the machine's.
	MemoryBytes int64
	// DiskBytes bounds the space of the files that it writes, in each directory
	// that its sandbox lets it write to. The default is as much as it leaves free
	// there, at least 1 GiB and at most 64. A command that has more is ended with
	// ErrDisk. On a disk that has nearly nothing left all are ended, with ErrLost.
	DiskBytes int64
	// OutputBytes bounds stdout and stderr together; the default is 64 MiB.
	OutputBytes int64
	// LineBytes is the length after which Line gets only the beginning of a line; the
	// default is 8 MiB.
	LineBytes int
}

// The defaults of Limits.
const (
	DefaultWall        = time.Hour
	DefaultOutputBytes = 64 << 20
	DefaultLineBytes   = 8 << 20
)

// Report is the end of a command.
type Report struct {
	// ExitCode is 128+n if signal n ended the command; -1 if Run ended it, or it did
	// not start.
	ExitCode int
	// Output has the first and last part of stdout and stderr together.
	Output []byte
	// Stderr has the first and last part of stderr; empty with MergeStderr.
	Stderr []byte
	// Bytes counts all that was printed, up to the limit.
	Bytes int64
	// Duration is wall clock time.
	Duration time.Duration
}

// The reasons for which Run ends a command. They are wrapped in its error.
var (
	ErrWall   = errors.New("took longer than allowed")
	ErrIdle   = errors.New("printed nothing for longer than allowed")
	ErrOutput = errors.New("printed more than allowed")
	ErrDisk   = errors.New("wrote more than allowed")
)

// ErrSurvivors is returned if processes could not be killed.
var ErrSurvivors = errors.New("left processes that cannot be killed")

// ErrSandbox is returned if a command's sandbox cannot be made. The command was not
// started.
var ErrSandbox = errors.New("the sandbox cannot be made")

// ErrLost is returned if there is no place for the command at present, or if the one where it ran,
// or the connection to it, ended before report and files had come back, or if its disk is full.
// Nothing that the command did is kept.
var ErrLost = errors.New("the place where the command runs is lost")

// ErrFull is returned with ErrLost where the disk of that place has nearly no room or no inode
// left.
var ErrFull = errors.New("its disk is full")

// killDelay is the time within which killed processes have to be gone.
const killDelay = 10 * time.Second

// Run runs the command and returns when it and every process that it started are gone.
// The exit status is in the report. An error means that the command did not start, was
// ended (ErrWall, ErrIdle, ErrOutput, ErrDisk, ErrLost, or the cause of ctx), or left
// processes behind. The report beside an error has the output up to then.
func Run(ctx context.Context, c Command) (Report, error) {
	if err := c.prepare(); err != nil {
		return Report{ExitCode: -1}, err
	}
	if e := c.Owner.executor; e != nil && c.Sandbox != nil {
		return e.Run(ctx, c)
	}
	c.Limits.MemoryBytes = cmp.Or(c.Limits.MemoryBytes, c.Owner.bounds.Memory)
	c.Limits.DiskBytes = cmp.Or(c.Limits.DiskBytes, c.Owner.bounds.Disk)
	ctx, stop := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop(nil)

	out := newOutputCapture(c, stop)
	wall := time.AfterFunc(c.Limits.Wall, func() { stop(fmt.Errorf("%w (%s)", ErrWall, c.Limits.Wall)) })
	defer wall.Stop()
	watch.Go(func() { c.watchDisk(ctx, stop) })

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

// Installed reports whether a command's executable is in PATH.
func Installed(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// prepare sets defaults and finds the executable, so that a missing one can be told
// from one that fails: its error wraps exec.ErrNotFound.
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

// exitCode returns a status as a shell shows it.
func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
