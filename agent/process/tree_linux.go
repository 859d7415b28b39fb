package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// verdict is the supervisor's report when all processes of the command are gone.
type verdict struct {
	Status syscall.WaitStatus // of the command
	// Start says why the command did not start; empty if it did.
	Start string
	// Sandbox says that Start is about the sandbox.
	Sandbox bool
	// Lack is the shortage for which the command did not start; 0 if there was another cause.
	Lack syscall.Errno
	// Left counts processes that could not be killed.
	Left int
}

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
	mark := c.Owner.newMark()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args = []string{supervisorName}
	cmd.Env = Merge(c.Env, []string{MarkerVariable + "=" + mark})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.Sandbox != nil {
		cmd.SysProcAttr = c.Sandbox.Attributes()
	}
	cmd.WaitDelay = killDelay
	connectStdio(cmd, c, out)

	wires, err := newPipes(c)
	if err != nil {
		return -1, err
	}
	defer wires.close()
	cmd.ExtraFiles = wires.supervisorEnds
	cmd.Cancel = wires.lifeline.Close
	limit := newCgroup(c, mark)
	defer limit.remove()
	if c.Owner.bounds.Memory > 0 && !limit.limitsMemory() {
		return -1, errNoMemoryLimit
	}
	err = cmd.Start()
	wires.closeSupervisorEnds()
	if err != nil {
		if c.Sandbox != nil {
			return -1, fmt.Errorf("%w: %w", ErrSandbox, err)
		}
		return -1, fmt.Errorf("%s cannot be started: %w", c.Path, err)
	}
	if err = limit.add(cmd.Process.Pid); err != nil && c.Owner.bounds.Memory > 0 {
		_ = wires.lifeline.Close() // it ends without an order
		return -1, errors.Join(fmt.Errorf("%w: %w", errNoMemoryLimit, err), cmd.Wait())
	}
	var group sync.WaitGroup
	ended := make(chan struct{})
	group.Go(func() { wires.serve(c, limit.paths(), ended) })
	var code int
	group.Go(func() { code, err = readVerdict(wires.result, c, mark, limit) })
	waited := cmd.Wait()
	close(ended)
	group.Wait()
	if code < 0 {
		err = errors.Join(err, waited)
	}
	return code, err
}

// pipes has both ends of the pipes between a service and a supervisor.
type pipes struct {
	// lifeline, result and offer are the service's ends. They carry the order and
	// heartbeats, the verdict, and the listener of a sandbox.
	lifeline, result, offer *os.File
	// supervisorEnds are passed on as descriptors from lifelineFD on.
	supervisorEnds []*os.File
	// lock is the file of Owner.Hold. It is among supervisorEnds, but is not closed
	// here.
	lock *os.File
	// listener was received from the sandbox.
	listener net.Listener
}

// newPipes opens the pipes that the command needs.
func newPipes(c *Command) (*pipes, error) {
	w := &pipes{supervisorEnds: make([]*os.File, lockFD-lifelineFD+1)}
	var err error
	set := func(fd int, f *os.File) { w.supervisorEnds[fd-lifelineFD] = f }
	var theirs *os.File
	if theirs, w.lifeline, err = os.Pipe(); err != nil {
		return nil, err
	}
	set(lifelineFD, theirs)
	if w.result, theirs, err = os.Pipe(); err != nil {
		w.close()
		return nil, err
	}
	set(reportFD, theirs)
	if c.Sandbox != nil && c.Sandbox.Listens() {
		if w.offer, theirs, err = sandbox.Sockets(); err != nil {
			w.close()
			return nil, err
		}
		set(offerFD, theirs)
	}
	if w.lock = c.Owner.heldLock(); w.lock != nil {
		set(lockFD, w.lock)
	}
	return w, nil
}

// closeSupervisorEnds closes the supervisor's ends in this process. It may be called
// twice.
func (w *pipes) closeSupervisorEnds() {
	for _, f := range w.supervisorEnds {
		if f != nil && f != w.lock {
			f.Close()
		}
	}
	w.supervisorEnds = nil
}

// serve sends the order, receives the sandbox's listener if there is one, and sends
// heartbeats until ended is closed.
func (w *pipes) serve(c *Command, groups []string, ended <-chan struct{}) {
	pulse := c.Owner.silenceLimit()
	err := json.NewEncoder(w.lifeline).Encode(order{
		Args: append([]string{c.Path}, c.Args...), Dir: c.Dir, Sandbox: c.Sandbox, User: sandbox.Caller(), Groups: groups,
		MaxSilence: pulse, Protect: protected.Load(),
	})
	if err != nil {
		return // the supervisor is gone; readVerdict reports that
	}
	defer sendHeartbeats(w.lifeline, pulse, ended)
	if w.offer == nil {
		return
	}
	if l, err := sandbox.Receive(w.offer); err == nil {
		w.listener = l
		c.Sandbox.Serve(l)
	}
}

// close closes all that is open in this process.
func (w *pipes) close() {
	w.closeSupervisorEnds()
	for _, f := range []*os.File{w.lifeline, w.result, w.offer} {
		if f != nil {
			f.Close()
		}
	}
	if w.listener != nil {
		_ = w.listener.Close()
	}
}

// readVerdict waits for the supervisor's verdict. A supervisor that was itself
// killed gives none. Then the mark finds the processes that are left, which may hold
// the pipes that the service waits for. Where the command had no memory left, the
// kernel may end the supervisor right after it, which says nothing else than that.
func readVerdict(result io.Reader, c *Command, mark string, limit *cgroup) (int, error) {
	var v verdict
	switch err := json.NewDecoder(result).Decode(&v); {
	case err != nil:
		_, err = sweep(context.Background(), mark)
		if err == nil && limit.ranOut() {
			return 128 + int(syscall.SIGKILL), nil
		}
		return -1, errors.Join(fmt.Errorf("%s: its supervisor was killed", c.Path), err)
	case v.Start != "" && v.Sandbox:
		return -1, fmt.Errorf("%w: %w", ErrSandbox, &startError{v.Start, v.Lack})
	case v.Start != "":
		return -1, fmt.Errorf("%s cannot be started%s: %w", c.Path, c.notVisibleHint(), &startError{v.Start, v.Lack})
	case v.Left > 0:
		return exitCode(v.Status), fmt.Errorf("%s %w (%d)", c.Path, ErrSurvivors, v.Left)
	}
	return exitCode(v.Status), nil
}

// notVisibleHint returns a hint for an error if the command does not exist in its
// sandbox.
func (c *Command) notVisibleHint() string {
	if c.Sandbox == nil || c.Sandbox.Visible(c.Path) {
		return ""
	}
	return ", because its sandbox does not show it; add it to policy.sandbox_read"
}
