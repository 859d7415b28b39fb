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
	// MaxBytes bounds the part of an attempt that a Writer keeps: its first
	// lines, up to three MiB, and its last ones, up to one MiB.
	MaxBytes = 4 << 20
	// MaxText bounds the text of a line, in bytes. The rest is cut off.
	MaxText = 16 << 10

	// batchBytes bounds the lines that are stored together, in bytes.
	batchBytes = 64 << 10
	// flushEvery is the interval at which waiting lines are stored.
	flushEvery = 200 * time.Millisecond
	// backlog bounds the lines that wait while the bus does not answer, in bytes. Further
	// lines are lost.
	backlog = 1 << 20
	// appendTimeout bounds one round of storing.
	appendTimeout = 5 * time.Second
	// closeTimeout bounds the last round, which Close waits for.
	closeTimeout = 3 * time.Second
)

// OutcomeOK is the text of the last line of an attempt that did its job.
const OutcomeOK = "ok"

// Appender is the part of bus.Transcripts that a Writer needs.
type Appender interface {
	// Append stores whole lines of an attempt. A call with an id that was stored
	// before changes nothing, so that it can be repeated after an error.
	Append(ctx context.Context, to forge.Key, a forge.Attempt, id string, lines []byte) error
}

// Config says where transcripts are kept. Bus and Log are required.
type Config struct {
	// Bus stores the lines in the stream.
	Bus Appender
	// Dir is an absolute path. Each attempt has a file there as well; with an empty one none
	// has.
	Dir string
	// Log receives a warning for each failure to store lines.
	Log *slog.Logger
}

// Writer keeps the transcript of an attempt. [Writer.Add] takes lines and
// returns at once; a goroutine stores them, in batches, in the stream and in
// the file. Errors are logged and never reach the attempt. An attempt that
// succeeded and has no line between its beginning and its end gets no
// transcript. Several goroutines may use a Writer.
type Writer struct {
	cfg     Config
	to      forge.Key
	attempt forge.Attempt
	// id is random and begins the ids of this writer's batches, so that no
	// batch is mistaken for that of an earlier writer of the same attempt.
	id string

	mu sync.Mutex
	// begun is the first line, until there is a second one.
	begun []byte
	// waiting has the lines that are to be stored.
	waiting []byte
	// size counts the bytes that were added so far.
	size int
	// lost counts the lines that did not fit into waiting, until a line says so.
	lost int
	// tail is nil until the attempt prints too much, and takes all lines but
	// the last one then.
	tail   *tail
	closed bool
	// behind is set if lines could not be stored before the writer was closed.
	behind bool

	// wake has room for one signal: run should store now.
	wake chan struct{}
	// done is closed when run has ended. It is nil until run is started, for
	// the first line that is to be stored.
	done chan struct{}
}

// New returns the writer of an attempt. The caller closes it.
func New(cfg Config, to forge.Key, a forge.Attempt) *Writer {
	return &Writer{cfg: cfg, to: to, attempt: a, id: rand.Text(), wake: make(chan struct{}, 1)}
}

// Add appends a line. It does not block, and does nothing after Close. A line
// that has more than MaxText of text is cut; one that would have to wait behind
// too many others is lost and counted.
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

// take appends an encoded line to waiting, behind lines that say how many are
// missing before it, and starts the goroutine that stores them with the first
// line. The caller holds the lock.
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

// poke makes run store the waiting lines now instead of at the next tick. It
// does not block.
func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close stores the lines that are left, for three seconds at most, and returns
// whether every line that was taken is in the stream. It may be called again.
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

// run stores waiting lines at every tick, when poked, and a last time when the
// writer is closed. It ends then, whether they could be stored or not.
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
		timeout := appendTimeout
		if closed {
			timeout = closeTimeout
		}
		stored := out.store(timeout)
		if closed {
			w.mu.Lock()
			w.behind = !stored
			w.mu.Unlock()
			return
		}
	}
}

// output stores the lines of a writer. Only its run uses it.
type output struct {
	w    *Writer
	file *file
	// batch has the lines that are being stored; nil if there are none.
	batch []byte
	// n counts the batches that are stored.
	n int
}

// store stores waiting lines, batch by batch, until none waits or one fails,
// and returns whether all are stored. A batch that failed is the first one of
// the next call, under the same id: the stream drops it if it had arrived after
// all.
func (o *output) store(timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for o.next() {
		if err := o.w.cfg.Bus.Append(ctx, o.w.to, o.w.attempt, batchID(o.w.id, o.n), o.batch); err != nil {
			o.w.cfg.Log.Warn("cannot store a part of a transcript; trying again", "error", err)
			return false
		}
		o.batch = nil
		o.n++
	}
	return true
}

// next reports whether there is a batch to store. It keeps the one that failed,
// or else cuts one from the waiting lines and writes it to the file.
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

// firstLines returns a copy of as many whole lines as fit into most bytes, but
// at least one.
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
