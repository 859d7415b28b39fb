package transcript

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
)

// MaxWhole bounds a whole transcript, of all deliveries of an attempt, in bytes before
// it is compressed. The newest lines are kept.
const MaxWhole = 2 * MaxBytes

// aboutKey is where an object has what is known of its lines.
const aboutKey = "transcript"

// about is what is known of a whole transcript.
type about struct {
	First   uint64         `json:"first"`              // sequence of its first batch in the stream
	Stored  time.Time      `json:"stored"`             // when that was stored there
	Began   time.Time      `json:"began"`              // of the first line
	Until   time.Time      `json:"until"`              // of the last line
	LeftOut int            `json:"left_out,omitempty"` // lines that were too much; the first line says so
	Batches map[string]int `json:"batches"`            // by writer: how many of its batches were taken over
}

// Store puts what the bus has of an attempt into an object, of all its claims and
// deliveries, beside what is in that already: the stream may have lost it since. An
// attempt without a transcript has no object. It can be repeated, and several may do
// so at the same time.
func Store(ctx context.Context, b *bus.Bus, to forge.Key, a forge.Attempt) error {
	batches, err := b.ReadTranscript(ctx, to, a)
	if err != nil || len(batches) == 0 {
		return err
	}
	return b.Objects().Update(ctx, bus.TranscriptName(to, a), func(before *bus.Object) (*bus.Object, error) {
		w := &whole{}
		if before != nil {
			if w, err = unpack(before); err != nil {
				w = &whole{} // it is of no use
			}
		}
		if !w.add(batches) {
			return nil, nil // there is nothing new
		}
		return w.pack(MaxWhole)
	})
}

// whole is a transcript with what is known of it.
type whole struct {
	about
	text []byte // lines, without the one that says how many are left out
}

// unpack reads an object.
func unpack(o *bus.Object) (*whole, error) {
	w := &whole{}
	var err error
	if w.about, err = parseAbout(o.About); err != nil {
		return nil, err
	}
	if w.text, err = unzip(o.Content); err != nil {
		return nil, err
	}
	if w.LeftOut > 0 {
		_, w.text, _ = bytes.Cut(w.text, []byte("\n"))
	}
	return w, nil
}

// unzip returns the lines in an object's content.
func unzip(content []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("a transcript in the object store: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, MaxWhole+MaxBytes))
	if err != nil {
		return nil, fmt.Errorf("a transcript in the object store: %w", err)
	}
	return text, nil
}

func parseAbout(notes map[string]string) (a about, err error) {
	if err = json.Unmarshal([]byte(notes[aboutKey]), &a); err != nil {
		err = fmt.Errorf("what is known of a transcript in the object store: %w", err)
	}
	return a, err
}

// add takes over what was not, and reports whether that is anything.
func (w *whole) add(batches []bus.TranscriptBatch) bool {
	added := false
	for _, b := range batches {
		if w.has(b.ID) {
			continue
		}
		if len(w.Batches) == 0 {
			w.First, w.Stored, w.Batches = b.Seq, b.At, map[string]int{}
		}
		writer, n := batchOf(b.ID)
		w.Batches[writer] = n + 1
		w.text = append(w.text, b.Lines...)
		if !bytes.HasSuffix(w.text, []byte("\n")) {
			w.text = append(w.text, '\n')
		}
		added = true
	}
	return added
}

// has reports whether lines were taken over that were appended under an id.
func (a *about) has(id string) bool {
	writer, n := batchOf(id)
	return a.Batches[writer] > n
}

// batchID is the id of a writer's batch; they are counted from 0.
func batchID(writer string, n int) string { return writer + "/" + strconv.Itoa(n) }

// batchOf is the reverse of batchID.
func batchOf(id string) (writer string, n int) {
	i := strings.LastIndexByte(id, '/')
	if n, err := strconv.Atoi(id[i+1:]); err == nil && i >= 0 {
		return id[:i], n
	}
	return id, 0
}

// pack returns the object, with the newest lines up to some bytes.
func (w *whole) pack(most int) (*bus.Object, error) {
	if over := len(w.text) - most; over > 0 {
		end := over + bytes.IndexByte(w.text[over-1:], '\n') // a whole line ends there
		w.LeftOut += bytes.Count(w.text[:end], []byte("\n"))
		w.text = w.text[end:]
	}
	first, last := ends(w.text)
	w.Began, w.Until = first.At, last.At
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed) // an attempt waits for it
	if err != nil {
		return nil, err
	}
	if w.LeftOut > 0 {
		first.Kind, first.Agent, first.Usage = forge.ProgressText, "", nil
		first.Text = fmt.Sprintf("%d lines before this one are left out: a transcript is kept up to %d MiB", w.LeftOut, MaxWhole>>20)
		_, err = zip.Write(first.encode())
	}
	_, writeErr := zip.Write(w.text)
	known, encodeErr := json.Marshal(w.about)
	err = errors.Join(err, writeErr, zip.Close(), encodeErr)
	return &bus.Object{About: map[string]string{aboutKey: string(known)}, Content: out.Bytes()}, err
}

// ends returns the first line of a text and its last.
func ends(text []byte) (first, last Line) {
	head, _, _ := bytes.Cut(text, []byte("\n"))
	tail := bytes.TrimRight(text, "\n")
	tail = tail[bytes.LastIndexByte(tail, '\n')+1:]
	for _, l := range Parse(head) {
		first = l
	}
	for _, l := range Parse(tail) {
		last = l
	}
	return first, last
}
