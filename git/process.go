package git

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"syscall"
)

// Process is a running git that is asked and answers through pipes.
type Process struct {
	In  io.WriteCloser
	Out *bufio.Reader

	ctx    context.Context //nolint:containedctx // of the process
	cmd    *exec.Cmd
	args   []string
	stderr *tail
}

// Start starts git with pipes as its input and output; Stdin, Stdout and Limit are not
// used. When ctx ends, git is terminated. Wait must be called in any case.
func (c Command) Start(ctx context.Context, args ...string) (*Process, error) {
	c.Stdin = nil
	p := &Process{ctx: ctx, cmd: c.prepare(ctx, args), args: args, stderr: &tail{limit: maxStderr}}
	p.cmd.Stderr = p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.In, p.Out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, commandError(ctx, args, p.stderr, err)
	}
	return p, nil
}

// Kill ends git at once, whatever it is doing.
func (p *Process) Kill() { _ = p.cmd.Process.Signal(syscall.SIGKILL) }

// Wait closes git's input and waits until git has ended. Any other exit code than 0 is an *Error.
func (p *Process) Wait() error {
	_ = p.In.Close()
	if err := p.cmd.Wait(); err != nil {
		return commandError(context.WithoutCancel(p.ctx), p.args, p.stderr, err)
	}
	return nil
}
