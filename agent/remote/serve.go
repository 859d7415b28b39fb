package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/hashicorp/yamux"

	"github.com/pfl-forge/pfl-forge/agent/process"
)

// Argument is the only argument of an executable that shall be the other end: see Main.
const Argument = "run-command"

// Main serves one command on stdin and stdout, if the executable was called with
// Argument, and exits; otherwise it returns at once. A service calls it first, with
// os.Args and the standard streams.
//
// The command runs as the same user. So that it cannot speak in the name of this process,
// it may neither trace it nor open its files, and signals do not end it.
func Main(args []string, stdin, stdout, stderr *os.File) {
	if len(args) != 2 || args[1] != Argument {
		return
	}
	// They are taken and forgotten: what is ignored the command would inherit.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	err := process.Protect()
	if err == nil {
		err = Serve(context.Background(), stdio{stdin, stdout})
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		syscall.Exit(1)
	}
	syscall.Exit(0) // os.Exit would wait a second in a build with the race detector
}

// stdio is stdin and stdout as one connection.
type stdio struct{ in, out *os.File }

// Read reads from stdin.
func (s stdio) Read(p []byte) (int, error) { return s.in.Read(p) }

// Write writes to stdout.
func (s stdio) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close closes both, so that readers and writers return.
func (s stdio) Close() error { return errors.Join(s.in.Close(), s.out.Close()) }

// Serve runs the command that Run sends over conn, and sends back how it ended. It
// returns when the other end has closed the connection; then no process of the command
// is left.
func Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	session, err := yamux.Server(conn, muxConfig())
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer func() { _ = session.Close() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	context.AfterFunc(ctx, func() { _ = session.Close() })
	var streams [3]*yamux.Stream
	for i := range streams {
		if streams[i], err = session.AcceptStreamWithContext(ctx); err != nil {
			return err
		}
	}
	control, there, back := streams[0], streams[1], streams[2]
	k, payload, err := readFrame(control)
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(payload, &o); err != nil || k != frameOrder {
		return fmt.Errorf("the order cannot be read: %w", errors.Join(err, fmt.Errorf("frame %q", byte(k))))
	}
	all.Go(func() { // the command ends with the connection
		<-session.CloseChan()
		stop()
	})
	e := perform(ctx, session, &o, &all, control, there)
	if err := writeJSON(control, frameEnd, e); err != nil {
		return err
	}
	if err := pack(back, o.Returned); err != nil {
		return err
	}
	if err := back.Close(); err != nil {
		return err
	}
	<-session.CloseChan()
	return nil
}

// perform takes the files and runs the command.
func perform(ctx context.Context, session *yamux.Session, o *order, all *sync.WaitGroup, control io.Writer, there io.Reader) *ending {
	fail := func(err error) *ending {
		return &ending{Report: process.Report{ExitCode: -1}, Cause: causeOf(err), Message: err.Error()}
	}
	for _, dir := range slices.Concat(o.Sent, o.Empty) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fail(fmt.Errorf("%w: %w; the pod needs a volume there", process.ErrSandbox, err))
		}
	}
	if err := unpack(there, o.Sent); err != nil {
		return fail(fmt.Errorf("%w: take the command's files: %w", process.ErrSandbox, err))
	}
	if o.Listen != "" {
		l, err := forward(session, o.Listen, all)
		if err != nil {
			return fail(fmt.Errorf("%w: %w", process.ErrSandbox, err))
		}
		defer func() { _ = l.Close() }()
	}
	lines, killed := lineSender{to: control}, memoryKills()
	report, err := process.Run(ctx, process.Command{
		Path: o.Path, Args: o.Args, Dir: o.Dir, Env: o.Env, Stdin: stdin(o), Limits: o.Limits,
		MergeStderr: o.MergeStderr, Line: lines.send,
	})
	if err == nil && report.ExitCode != 0 && memoryKills() > killed {
		report.ExitCode = -1
		err = fmt.Errorf("%w: out of memory: the kernel killed a process of the command at the container's limit", process.ErrLost)
	}
	e := &ending{Report: report}
	if err != nil {
		e.Cause, e.Message = causeOf(err), err.Error()
	}
	return e
}

// stdin returns the command's input; nil if it has none.
func stdin(o *order) []byte {
	if !o.HasStdin {
		return nil
	}
	return append([]byte{}, o.Stdin...)
}

// lineSender sends the lines of a command's output.
type lineSender struct{ to io.Writer }

// send sends one line. An error ends the session, and so the command.
func (s lineSender) send(from process.Stream, line []byte) {
	k := frameStdout
	if from == process.Stderr {
		k = frameStderr
	}
	_ = writeFrame(s.to, k, line)
}

// forward opens a stream to the service for each connection to an address of loopback,
// until the listener that it returns is closed. What it starts is added to all, and ends
// with the session.
func forward(session *yamux.Session, addr string, all *sync.WaitGroup) (net.Listener, error) {
	l, err := net.Listen("tcp", addr) //nolint:noctx // it is made at once
	if err != nil {
		return nil, err
	}
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			stream, err := session.OpenStream()
			if err != nil {
				_ = conn.Close()
				return
			}
			all.Go(func() { join(conn, stream) })
		}
	})
	return l, nil
}

// join copies both ways until both directions have ended, and closes both.
func join(a net.Conn, b *yamux.Stream) {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(b, a)
		_ = b.Close()
	})
	_, _ = io.Copy(a, b)
	_ = a.Close()
	both.Wait()
}
