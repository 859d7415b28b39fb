package transcript

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// maxLine bounds an encoded line that is read, in bytes. A Writer's are shorter: MaxText, if
// each byte of it takes six.
const maxLine = 256 << 10

// ErrPlace says of a place in a transcript that it is not there any more, or never was.
var ErrPlace = errors.New("that place of the transcript is not there any more; begin without it")

// ReadPage reads lines of an attempt from a place on, as many as there is room for on the page,
// and sets Next, or Later if the page says that the attempt is running. The archived transcript
// comes first, if there is one, and then what the stream has beside it. No more than the
// compressed whole and a page is in memory. Errors: bus.ErrNotFound if nothing is stored,
// ErrPlace.
//
// Who wrote the lines is not known for sure: any worker may write to the stream and to the
// store. So texts are made harmless once more, and a line does not say of which attempt it is.
func ReadPage(ctx context.Context, b *bus.Bus, to forge.Key, a forge.Attempt, from document.Place, page *document.Transcript) error {
	r := pager{page: page, at: from, checked: from.Seq == 0}
	page.Lines = []document.TranscriptLine{}
	found := from.Seq > 0
	if !found {
		err := r.whole(ctx, b, objects.TranscriptName(to, a))
		switch found = err == nil; {
		case errors.Is(err, bus.ErrNotFound) && from.Line > 0:
			return ErrPlace
		case err != nil && !errors.Is(err, bus.ErrNotFound):
			return err
		}
	}
	if r.full {
		return nil
	}
	err := b.Transcripts.ReadFrom(ctx, to, a, from.Seq, func(one transcripts.Batch) bool {
		found = true
		return r.batch(one)
	})
	switch {
	case err != nil:
		return err
	case r.lost, !r.checked:
		return ErrPlace
	case !found && !page.Running:
		return bus.ErrNotFound
	case !r.full && page.Running:
		page.Later = r.at.String()
	}
	return nil
}

// pager fills a page, first from the archived transcript and then from the stream. What both
// have is taken once: batches have ids, and the archived transcript knows which it has.
type pager struct {
	page *document.Transcript
	// at is the place after the last line that was taken; in the beginning where the page
	// begins.
	at document.Place
	// full says that there was a line too much, and Next is set.
	full bool
	// about names the batches that the archived transcript has.
	about about
	// checked says that the batch was found in which the page begins, if it does in one; lost
	// that another one is in its place.
	checked, lost bool
	// secrets takes out keys and tokens of well-known shapes, which no worker of ours writes.
	secrets redact.Redactor
}

// whole takes the lines of the archived transcript from the place on. One that is damaged ends
// where the damage is, and the page says so.
func (r *pager) whole(ctx context.Context, b *bus.Bus, name objects.Name) error {
	o, err := b.Objects.Read(ctx, name)
	if err != nil {
		return err
	}
	known, err := parseAbout(o.About)
	var zip *gzip.Reader
	if err == nil {
		zip, err = gzip.NewReader(bytes.NewReader(o.Content))
	}
	if err != nil || known.LeftOut < 0 {
		return r.damaged()
	}
	r.about = known
	within := &io.LimitedReader{R: zip, N: MaxWhole + MaxBytes}
	lines := lineReader{from: bufio.NewReader(within)}
	place := document.Place{Line: known.LeftOut}
	if known.LeftOut > 0 { // the first line says so
		raw, size, err := lines.next()
		if err != nil {
			return r.damaged()
		}
		if r.at.Line < known.LeftOut && !r.add(raw, size, place) {
			return nil
		}
	}
	for skip := r.at.Line; ; {
		raw, size, err := lines.next()
		switch {
		case err != nil && !errors.Is(err, io.EOF), within.N == 0:
			return r.damaged()
		case err != nil:
			if skip > place.Line {
				return ErrPlace
			}
			return nil
		}
		place.Line++
		if place.Line > skip && !r.add(raw, size, place) {
			return nil
		}
	}
}

// damaged says so on the page. What the stream has is shown all the same, also what was read
// before the damage.
func (r *pager) damaged() error {
	r.about = about{}
	r.page.Note = "the stored whole of this transcript is damaged: lines may be missing, or come twice"
	if r.at.Line > 0 && len(r.page.Lines) == 0 {
		return ErrPlace
	}
	return nil
}

// batch takes the lines of a batch that the archived transcript does not have; false if the
// page is full.
func (r *pager) batch(b transcripts.Batch) bool {
	place := document.Place{Seq: b.Seq, Batch: hash(b.ID)}
	skip := 0
	if !r.checked {
		r.checked = true
		if r.lost = r.at.Seq != b.Seq || r.at.Batch != place.Batch; r.lost {
			return false
		}
		skip = r.at.Line
	}
	if r.about.has(b.ID) {
		return true
	}
	for raw := range bytes.Lines(b.Lines) {
		place.Line++
		if place.Line > skip && !r.add(raw, len(raw), place) {
			return false
		}
	}
	if r.lost = skip > place.Line; r.lost {
		return false
	}
	r.at = place
	return true
}

// add takes a line, after which the place is; false if the page is full. Then the page ends
// before the line, and Next is the place where it began.
func (r *pager) add(raw []byte, size int, after document.Place) bool {
	l := r.line(raw, size)
	if !r.page.Add(l) {
		r.full, r.page.Next = true, r.at.String()
		return false
	}
	r.at = after
	return true
}

// line returns an encoded line as readers get it.
func (r *pager) line(raw []byte, size int) document.TranscriptLine {
	var l Line
	if size > maxLine || json.Unmarshal(raw, &l) != nil || l.At.UTC().Year() > 9999 || l.At.UTC().Year() < 0 { // JSON has no other years
		return document.TranscriptLine{Kind: document.Unreadable, Size: size}
	}
	d := document.TranscriptLine{
		At: l.At.UTC(), Claim: l.Claim, Replica: term.Line(string(l.Replica)), Kind: term.Line(string(l.Kind)), Agent: term.Line(l.Agent),
		Text: r.secrets.Text(term.Sanitize(l.Text)),
	}
	if u := l.Usage; u != nil {
		used := document.Used{
			InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens,
			Turns: u.Turns, CostUSD: u.CostUSD,
		}
		d.Usage = &document.TranscriptUsage{Used: used, Calls: u.Calls}
	}
	return d
}

// hash returns a short hash of the id of a batch, which its writer chose.
func hash(id string) uint32 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, id)
	return h.Sum32()
}

// lineReader reads lines of any length, of which it keeps a beginning.
type lineReader struct {
	from *bufio.Reader
	line []byte
}

// next returns the next line, up to a bit more than maxLine of it, and its length. The line is
// good until the next call. Error: io.EOF after the last one.
func (r *lineReader) next() (line []byte, size int, err error) {
	r.line = r.line[:0]
	for {
		part, err := r.from.ReadSlice('\n')
		size += len(part)
		if len(r.line) <= maxLine {
			r.line = append(r.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && size > 0, err == nil:
			return r.line, size, nil
		default:
			return nil, 0, fmt.Errorf("read a transcript: %w", err)
		}
	}
}
