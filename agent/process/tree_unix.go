//go:build unix && !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// runTree runs the command below a supervisor and returns its exit status; -1 beside an
// error if there is none.
//
// The supervisor is this executable again, as a process that adopts every orphan of the
// command and lives until none of its descendants is left. In a sandbox it is process 1
// of a PID namespace, with which the kernel kills all others; elsewhere it is a
// PR_SET_CHILD_SUBREAPER. It holds the read end of a pipe, the lifeline: when the
// service closes it or dies, the supervisor kills the tree.
//
// PR_SET_CHILD_SUBREAPER is process-wide, so the service itself must not have it: it
// would adopt the orphans of everything else that it runs, and never reap them.
func runTree(ctx context.Context, c *Command, out *outputCapture) (int, error) {
	if c.Owner.bounds.Memory > 0 {
		return -1, fmt.Errorf("%w: %s bounds the memory of commands, which takes Linux", ErrSandbox, demand.MemoryVariable)
	}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = Merge(c.Env, []string{MarkerVariable + "=" + c.Owner.newMark()})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	group := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = group
	cmd.WaitDelay = killDelay
	connectStdio(cmd, c, out)
	if err := cmd.Start(); err != nil {
		return -1, fmt.Errorf("%s cannot be started: %w", c.Path, err)
	}
	err := cmd.Wait()
	_ = group()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, err
	}
	return exitCode(cmd.ProcessState.Sys().(syscall.WaitStatus)), nil
}

// Sweep kills every process that an earlier process of this service left running, and
// returns how many it killed. Call it before the first command.
func (o Owner) Sweep(context.Context) (int, error) { return 0, nil }

// LimitedBy describes, for pfl-forge doctor, the mechanism that limits the number of a
// command's processes; "" if there is none.
func LimitedBy() string { return "" }

// MemoryLimit returns, for pfl-forge doctor, how many bytes of memory a command
// may have; 0 if nothing limits it.
func MemoryLimit(demand.Bounds) int64 { return 0 }

// DiskLimit returns, for pfl-forge doctor, how many bytes a command may write
// to a directory; 0 if nothing limits it.
func DiskLimit(string, demand.Bounds) int64 { return 0 }
