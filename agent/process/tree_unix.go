//go:build unix && !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
)

// runTree runs the command in a session of its own and kills its process group
// at the end. A daemon that leaves the group gets away: only Linux offers the
// means to find it.
func runTree(ctx context.Context, c *Command, out *outputCapture) (int, error) {
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

// Sweep finds nothing here: only Linux shows the environment of processes.
func (o Owner) Sweep(context.Context) (int, error) { return 0, nil }

// LimitedBy says what limits the number of a command's processes: here, nothing.
func LimitedBy() string { return "" }
