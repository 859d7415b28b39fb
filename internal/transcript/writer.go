package transcript

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

const (
	// MaxBytes bounds what is kept of an attempt: its first lines, and its last.
	MaxBytes = 4 << 20
	// MaxText bounds the text of a line, in bytes.
	MaxText = 16 << 10

	batchBytes  = 64 << 10 // of lines that are stored together
	backlog     = 1 << 20  // bytes that wait while they cannot be stored; what is more is lost
	flushEvery  = 200 * time.Millisecond
	appendTime  = 5 * time.Second
	closingTime = 3 * time.Second
)

// OutcomeOK is the text of the last line of an attempt that did its job.
const OutcomeOK = "ok"

// Appender stores lines; it is a bus.
type Appender interface {
	// AppendTranscript stores whole lines; with the same id it can be repeated.
	AppendTranscript(ctx context.Context, to forge.Key, a forge.Attempt, id string, lines []byte) error
}

// Config says where transcripts are kept.
type Config struct {
	Bus Appender
	Dir string // absolute; a file for each attempt is kept there too; empty: none
	Log *slog.Logger
}

// Writer keeps the transcript of an attempt. That it cannot be kept stops nobody's
// work. An attempt that did its job, and of which nothing but its beginning and end is
// told, has none. It is safe for concurrent use.
type Writer struct {
	cfg     Config
	to      forge.Key
	attempt forge.Attempt
	id      string // of this writer

	mu      sync.Mutex
	begun   []byte // the first line, until there is a second one
	waiting []byte // lines to be stored
	size    int    // bytes taken so far
	lost    int    // lines that were left out, until that is said
	tail    *tail  // nil: it is not too much yet
	closed  bool
	behind  bool // lines wait that could not be stored before it was closed

	wake chan struct{} // of capacity 1
	done chan struct{} // closed when nothing is stored any more; nil: nothing ever was
}

// New returns the writer of an attempt. It has to be closed.
func New(cfg Config, to forge.Key, a forge.Attempt) *Writer {
	return &Writer{cfg: cfg, to: to, attempt: a, id: rand.Text(), wake: make(chan struct{}, 1)}
}

// Add takes a line. It does not block.
func (w *Writer) Add(l Line) {
	if len(l.Text) > MaxText {
		l.Text = l.Text[:MaxText]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	text := l.encode()
	switch {
	case l.Kind == forge.ProgressStarted && w.done == nil:
		w.begun = text
		return
	case l.Kind == forge.ProgressEnded && w.done == nil && l.Text == OutcomeOK:
		return
	case l.Kind == forge.ProgressEnded: // how it ended is always told
	case w.tail != nil:
		w.tail.add(text)
		return
	case w.size+len(text) > MaxBytes-maxTail:
		w.tail = &tail{}
		w.tail.add(text)
		l.Kind, l.Usage = forge.ProgressText, nil
		l.Text = fmt.Sprintf("this is more than %d MiB: the last lines follow when it has ended", (MaxBytes-maxTail)>>20)
		text = l.encode()
	case len(w.waiting)+len(text) > backlog:
		w.lost++
		return
	}
	w.take(l, text)
}

func (w *Writer) take(l Line, text []byte) {
	if w.done == nil {
		w.done = make(chan struct{})
		w.waiting = w.begun
		go w.run()
	}
	if w.lost > 0 {
		said := l
		said.Kind, said.Text, said.Usage = forge.ProgressText, fmt.Sprintf("%d lines are lost: they could not be stored in time", w.lost), nil
		w.waiting = append(w.waiting, said.encode()...)
		w.lost = 0
	}
	if w.tail != nil && l.Kind == forge.ProgressEnded {
		w.waiting = append(w.waiting, w.tail.text(l)...)
		w.tail = &tail{}
	}
	w.waiting = append(w.waiting, text...)
	w.size += len(text)
	if len(w.waiting) >= batchBytes {
		w.poke()
	}
}

func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close stores what is left, for a few seconds at most. It is false if not everything
// could be.
func (w *Writer) Close() bool {
	w.mu.Lock()
	w.closed = true
	done := w.done
	w.mu.Unlock()
	w.poke()
	if done != nil {
		<-done
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.behind
}

// run stores lines until the writer is closed.
func (w *Writer) run() {
	defer close(w.done)
	f := openFile(w)
	defer f.close()
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	out := output{w: w, file: f}
	for {
		select {
		case <-tick.C:
		case <-w.wake:
		}
		w.mu.Lock()
		closed := w.closed
		w.mu.Unlock()
		patience := appendTime
		if closed {
			patience = closingTime
		}
		stored := out.store(patience)
		if closed {
			w.mu.Lock()
			w.behind = !stored
			w.mu.Unlock()
			return
		}
	}
}

// output is what stores a writer's lines.
type output struct {
	w     *Writer
	file  *file
	batch []byte // that is being stored
	n     int    // batches so far
}

// store stores what waits; it is false if it could not.
func (o *output) store(patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for o.next() {
		if err := o.w.cfg.Bus.AppendTranscript(ctx, o.w.to, o.w.attempt, batchID(o.w.id, o.n), o.batch); err != nil {
			o.w.cfg.Log.Warn("cannot store a part of a transcript; trying again", "attempt", o.w.attempt.String(), "error", err)
			return false
		}
		o.batch = nil
		o.n++
	}
	return true
}

// next makes sure that there is a batch, if any line waits.
func (o *output) next() bool {
	if o.batch != nil {
		return true
	}
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	if len(o.w.waiting) == 0 {
		return false
	}
	o.batch = firstLines(o.w.waiting, batchBytes)
	o.w.waiting = o.w.waiting[len(o.batch):]
	o.file.write(o.batch)
	return true
}

// firstLines returns a copy of as many whole lines as fit, at least one.
func firstLines(text []byte, most int) []byte {
	end := len(text)
	if end > most {
		end = most
		for end > 0 && text[end-1] != '\n' {
			end--
		}
		for end == 0 || text[end-1] != '\n' {
			end++
		}
	}
	return append([]byte(nil), text[:end]...)
}
