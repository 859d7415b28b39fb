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
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
)

// MaxWhole bounds an archived transcript, which has all claims of an attempt, in bytes before
// it is compressed. The newest lines are kept.
const MaxWhole = 2 * MaxBytes

// aboutKey is the key of an object's metadata that has the about of its lines, as JSON.
const aboutKey = "transcript"

// about describes an archived transcript. It is stored beside the lines.
type about struct {
	// First is the sequence of its first batch in the stream, and Stored the time when that
	// was stored there. By both, a reader knows whether the stream still has it.
	First  uint64    `json:"first"`
	Stored time.Time `json:"stored"`
	// Began and Until are the times of the first and the last line.
	Began time.Time `json:"began"`
	Until time.Time `json:"until"`
	// LeftOut counts the lines that were too much. The first line of the text says so.
	LeftOut int `json:"left_out,omitempty"`
	// Batches counts by writer how many of its batches of the stream are in the text.
	Batches map[string]int `json:"batches"`
}

// Store archives an attempt: it adds what the stream has of it, of all its claims, to its
// object. What the object has already stays, because the stream may have lost it since. An
// attempt without a transcript gets no object. Store can be repeated, and several workers may
// call it at the same time.
func Store(ctx context.Context, b *bus.Bus, to forge.Key, a forge.Attempt) error {
	batches, err := b.Transcripts.Read(ctx, to, a)
	if err != nil || len(batches) == 0 {
		return err
	}
	return b.Objects.Update(ctx, objects.TranscriptName(to, a), func(before *objects.Object) (*objects.Object, error) {
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

// whole is an archived transcript in memory.
type whole struct {
	about
	// text has the lines, without the one that says how many are left out.
	text []byte
}

// unpack returns the transcript in an object; it is the reverse of pack.
func unpack(o *objects.Object) (*whole, error) {
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

// unzip returns the lines in an object's content, up to a bound.
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

// parseAbout returns the about in an object's metadata.
func parseAbout(metadata map[string]string) (a about, err error) {
	if err = json.Unmarshal([]byte(metadata[aboutKey]), &a); err != nil {
		err = fmt.Errorf("what is known of a transcript in the object store: %w", err)
	}
	return a, err
}

// add appends the batches that the transcript does not have, and reports whether there was any.
func (w *whole) add(batches []transcripts.Batch) bool {
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

// has reports whether the transcript has the batch with this id. The batches of a writer are
// added in their order, so that counting them is enough.
func (a *about) has(id string) bool {
	writer, n := batchOf(id)
	return a.Batches[writer] > n
}

// batchID returns the id of a writer's batch. Batches count from 0.
func batchID(writer string, n int) string { return writer + "/" + strconv.Itoa(n) }

// batchOf returns the writer and number of a batch's id.
func batchOf(id string) (writer string, n int) {
	i := strings.LastIndexByte(id, '/')
	if n, err := strconv.Atoi(id[i+1:]); err == nil && i >= 0 {
		return id[:i], n
	}
	return id, 0
}

// pack returns the object of a transcript, with the newest lines up to so many bytes.
func (w *whole) pack(most int) (*objects.Object, error) {
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
	return &objects.Object{About: map[string]string{aboutKey: string(known)}, Content: out.Bytes()}, err
}

// ends returns the first and the last line of a text.
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
