package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// reportDelay is how much longer than its limit of time a command's report and files may
// take.
const reportDelay = 10 * time.Minute

// Run runs a command at the other end of conn, where Serve is, and closes conn. Report
// and errors are those of process.Run, and process.ErrLost.
//
// Of the command's sandbox, the directories below the service's state are sent; those
// that are writable, but for caches, are replaced at the end by what they have become.
// All other paths are the other machine's. The command sees nothing else of this one.
func Run(ctx context.Context, conn io.ReadWriteCloser, c process.Command, state string) (process.Report, error) {
	none := process.Report{ExitCode: -1}
	o, err := newOrder(&c, state)
	if err != nil {
		return none, errors.Join(err, conn.Close())
	}
	session, err := yamux.Client(conn, muxConfig())
	if err != nil {
		return none, errors.Join(err, conn.Close())
	}
	defer func() { _ = session.Close() }()
	wall := c.Limits.Wall
	if wall <= 0 {
		wall = process.DefaultWall
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wall+reportDelay, fmt.Errorf("%w: there is no report %s after its time was over", process.ErrLost, reportDelay))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	if c.Sandbox != nil && c.Sandbox.Listen != "" {
		c.Sandbox.Serve(session) // which is a listener for the streams that Serve opens
	}
	report, err := converse(session, o, &c)
	switch {
	case ctx.Err() != nil:
		return none, fmt.Errorf("%s %w", filepath.Base(c.Path), context.Cause(ctx))
	case err != nil && report.ExitCode == 0:
		report.ExitCode = -1
	}
	return report, err
}

// newOrder returns the order for a command.
func newOrder(c *process.Command, state string) (*order, error) {
	o := &order{
		Path: c.Path, Args: c.Args, Dir: c.Dir, Env: c.Env, Stdin: c.Stdin, HasStdin: c.Stdin != nil,
		MergeStderr: c.MergeStderr, Limits: c.Limits,
	}
	if c.Sandbox == nil {
		return o, nil
	}
	o.Listen = c.Sandbox.Listen
	mounts := slices.Clone(c.Sandbox.Mounts)
	slices.SortFunc(mounts, func(a, b sandbox.Mount) int { return strings.Compare(a.Path, b.Path) })
	for _, m := range mounts {
		if m.Kind == sandbox.Hidden && covered(o.Sent, m.Path) {
			return nil, fmt.Errorf("%s is hidden within a directory that is not; it cannot be left out", m.Path)
		}
		if m.Cache && below(state, m.Path) {
			o.Empty = append(o.Empty, m.Path)
			continue
		}
		if m.To != "" || m.Kind != sandbox.Writable && m.Kind != sandbox.ReadOnly || !below(state, m.Path) {
			continue
		}
		if covered(o.Sent, m.Path) {
			if m.Kind == sandbox.Writable && !covered(o.Returned, m.Path) {
				return nil, fmt.Errorf("%s is writable within a directory that is not; it cannot be sent", m.Path)
			}
			if m.Kind == sandbox.ReadOnly && covered(o.Returned, m.Path) {
				return nil, fmt.Errorf("%s is read-only within a directory that is writable; what becomes of it would be taken", m.Path)
			}
			continue
		}
		if info, err := os.Stat(m.Path); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s is no directory; it cannot be sent", m.Path)
		}
		o.Sent = append(o.Sent, m.Path)
		if m.Kind == sandbox.Writable {
			o.Returned = append(o.Returned, m.Path)
		}
	}
	return o, nil
}

// covered reports whether a path is one of the directories, or below one.
func covered(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(dir, path) })
}

// below reports whether path is dir or below it. Both are absolute and clean.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// converse sends order and files, passes on what is printed, and takes report and files.
func converse(session *yamux.Session, o *order, c *process.Command) (process.Report, error) {
	none := process.Report{ExitCode: -1}
	var streams [3]*yamux.Stream // control, files there, files back
	for i := range streams {
		s, err := session.OpenStream()
		if err != nil {
			return none, lost(err)
		}
		streams[i] = s
	}
	control, there, back := streams[0], streams[1], streams[2]
	if err := writeJSON(control, frameOrder, o); err != nil {
		return none, lost(err)
	}
	if err := pack(sending{there}, o.Sent); err != nil {
		return none, err
	}
	if err := there.Close(); err != nil {
		return none, lost(err)
	}
	end, err := relay(control, c)
	if err != nil {
		return none, lost(err)
	}
	if err := replace(back, o.Returned); err != nil {
		if errors.Is(err, errTree) {
			return end.Report, err
		}
		return none, lost(err)
	}
	return end.Report, end.err()
}

// relay passes on printed lines until the command's end. It counts what it is sent, as
// the other end should have done.
func relay(control io.Reader, c *process.Command) (*ending, error) {
	left := c.Limits.OutputBytes
	if left <= 0 {
		left = process.DefaultOutputBytes
	}
	left += maxFrame // with the ends of lines, and what passed the limit
	for {
		k, payload, err := readFrame(control)
		if err != nil {
			return nil, err
		}
		switch k {
		case frameEnd:
			var e ending
			if err := json.Unmarshal(payload, &e); err != nil {
				return nil, fmt.Errorf("read the report: %w", err)
			}
			return &e, nil
		case frameStdout, frameStderr:
			if left -= int64(len(payload)) + 1; left < 0 {
				return nil, process.ErrOutput
			}
			from := process.Stdout
			if k == frameStderr {
				from = process.Stderr
			}
			if c.Line != nil {
				c.Line(from, payload)
			}
		default:
			return nil, fmt.Errorf("a frame of the unknown kind %q", byte(k))
		}
	}
}

// sending is a stream whose errors are those of the connection, beside those of
// the files that are sent by it.
type sending struct{ io.Writer }

// Write implements io.Writer.
func (s sending) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil {
		err = lost(err)
	}
	return n, err
}

// lost returns an error of the connection as one that wraps process.ErrLost.
func lost(err error) error {
	if errors.Is(err, process.ErrOutput) {
		return err
	}
	return fmt.Errorf("%w: %w", process.ErrLost, err)
}
