package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Stream says to which stream a line was printed.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// outputCapture receives a command's output: it counts bytes, splits lines, keeps the
// first and last part, and stops the command at its limits.
type outputCapture struct {
	mu     sync.Mutex
	limits Limits
	stop   context.CancelCauseFunc
	// idle fires after Limits.Idle without output; nil without that limit.
	idle  *time.Timer
	bytes int64
	// closed makes late writes go nowhere.
	closed bool
	all    headTail
	errs   headTail
	out    lineSplitter
	err    lineSplitter
}

// newOutputCapture starts the idle timer. stop ends the command with a cause.
func newOutputCapture(c Command, stop context.CancelCauseFunc) *outputCapture {
	k := &outputCapture{limits: c.Limits, stop: stop}
	k.out = lineSplitter{from: Stdout, most: c.Limits.LineBytes, emit: c.Line}
	k.err = lineSplitter{from: Stderr, most: c.Limits.LineBytes, emit: c.Line}
	if d := c.Limits.Idle; d > 0 {
		k.idle = time.AfterFunc(d, func() { stop(fmt.Errorf("%w (%s)", ErrIdle, d)) })
	}
	return k
}

// stdout returns the writer for the command's stdout.
func (k *outputCapture) stdout() io.Writer { return &writer{k, &k.out} }

// stderr returns the writer for the command's stderr.
func (k *outputCapture) stderr() io.Writer { return &writer{k, &k.err} }

// write takes output of one stream.
func (k *outputCapture) write(s *lineSplitter, p []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	if left := k.limits.OutputBytes - k.bytes; int64(len(p)) > left {
		p = p[:left] // the rest is dropped; the command must not block on a full pipe
		k.stop(fmt.Errorf("%w (%d bytes)", ErrOutput, k.limits.OutputBytes))
	}
	k.bytes += int64(len(p))
	if k.idle != nil && len(p) > 0 {
		k.idle.Reset(k.limits.Idle)
	}
	k.all.add(p)
	if s.from == Stderr {
		k.errs.add(p)
	}
	s.split(p)
}

// close stops the idle timer and passes on last lines that have no end.
func (k *outputCapture) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.idle != nil {
		k.idle.Stop()
	}
	k.out.flush()
	k.err.flush()
	k.closed = true // a late writer's output is dropped
}

// report returns the output's part of the report.
func (k *outputCapture) report() Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Report{Output: k.all.bytes(), Stderr: k.errs.bytes(), Bytes: k.bytes}
}

// writer is one stream's io.Writer. It never fails: output beyond the limit is dropped.
type writer struct {
	to   *outputCapture
	from *lineSplitter
}

func (w *writer) Write(p []byte) (int, error) {
	w.to.write(w.from, p)
	return len(p), nil
}

// lineSplitter cuts a stream into lines of at most `most` bytes. The rest of a longer
// line is dropped.
type lineSplitter struct {
	from Stream
	most int
	emit func(Stream, []byte)
	// partial is the line so far.
	partial []byte
}

// split passes on the lines that p completes.
func (s *lineSplitter) split(p []byte) {
	if s.emit == nil {
		return
	}
	for {
		part, rest, found := bytes.Cut(p, []byte("\n"))
		if room := s.most - len(s.partial); len(part) > room {
			part = part[:room]
		}
		if !found {
			s.partial = append(s.partial, part...)
			return
		}
		if len(s.partial) > 0 {
			part = append(s.partial, part...)
			s.partial = nil
		}
		s.emit(s.from, part)
		p = rest
	}
}

// flush passes on a last line without an end.
func (s *lineSplitter) flush() {
	if s.emit != nil && len(s.partial) > 0 {
		s.emit(s.from, s.partial)
		s.partial = nil
	}
}

// How much is kept of a long output.
const (
	headBytes = 16 << 10
	tailBytes = 48 << 10
)

// headTail keeps the first headBytes and the last tailBytes of its input.
type headTail struct {
	head []byte
	// tail has up to twice tailBytes, so that it is seldom moved.
	tail []byte
	// cut counts the bytes left out between head and tail.
	cut int64
}

// add takes more output. It copies p.
func (e *headTail) add(p []byte) {
	if room := headBytes - len(e.head); room > 0 {
		n := min(room, len(p))
		e.head = append(e.head, p[:n]...)
		p = p[n:]
	}
	e.tail = append(e.tail, p...)
	if over := len(e.tail) - tailBytes; over > tailBytes {
		e.cut += int64(over)
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
}

// bytes returns both parts, with a note between them if something was left out.
func (e *headTail) bytes() []byte {
	tail, cut := e.tail, e.cut
	if over := len(tail) - tailBytes; over > 0 {
		tail, cut = tail[over:], cut+int64(over)
	}
	out := bytes.Clone(e.head)
	if cut > 0 {
		out = fmt.Appendf(out, "\n... %d bytes left out ...\n", cut)
	}
	return append(out, tail...)
}
