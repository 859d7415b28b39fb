package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// verdict is what a supervisor reports when its tree is gone.
type verdict struct {
	Status syscall.WaitStatus // of the command
	Start  string             // why it did not start
	Left   int                // processes that cannot be killed
}

// runTree runs the command below a supervisor: this executable again, as a
// process that adopts every orphan of the command (PR_SET_CHILD_SUBREAPER) and
// lives until none of its descendants is left. It holds the read end of a pipe,
// the lifeline: when this service closes it, or dies, the tree is killed.
//
// The setting is process-wide, so the service itself must not have it: it would
// adopt the orphans of everything else that it runs, and never reap them.
func runTree(ctx context.Context, c *Command, out *capture) (int, error) {
	mark := c.Owner.run()
	held, lifeline, err := os.Pipe()
	if err != nil {
		return -1, err
	}
	defer lifeline.Close()
	result, report, err := os.Pipe()
	if err != nil {
		held.Close()
		return -1, err
	}
	defer result.Close()

	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = append([]string{supervisorName, c.Path}, c.Args...)
	cmd.Dir = c.Dir
	cmd.Env = Merge(c.Env, []string{MarkerVariable + "=" + mark})
	cmd.ExtraFiles = []*os.File{held, report} // 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = lifeline.Close
	cmd.WaitDelay = killDelay
	connect(cmd, c, out)

	err = cmd.Start()
	held.Close()
	report.Close()
	if err != nil {
		return -1, fmt.Errorf("%s cannot be started: %w", c.Path, err)
	}
	var code int
	var group sync.WaitGroup
	group.Go(func() { code, err = conclude(result, c, mark) })
	waited := cmd.Wait()
	group.Wait()
	if code < 0 {
		err = errors.Join(err, waited)
	}
	return code, err
}

// conclude waits for the supervisor's verdict. A supervisor that was itself
// killed gives none: then the mark finds what is left, which may well hold the
// pipes that the service waits for.
func conclude(result io.Reader, c *Command, mark string) (int, error) {
	var v verdict
	switch err := json.NewDecoder(result).Decode(&v); {
	case err != nil:
		_, err = sweep(context.Background(), mark)
		return -1, errors.Join(fmt.Errorf("%s: its supervisor was killed", c.Path), err)
	case v.Start != "":
		return -1, fmt.Errorf("%s cannot be started: %s", c.Path, v.Start)
	case v.Left > 0:
		return exitCode(v.Status), fmt.Errorf("%s %w (%d)", c.Path, ErrSurvivors, v.Left)
	}
	return exitCode(v.Status), nil
}
