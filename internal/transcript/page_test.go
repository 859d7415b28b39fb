package transcript_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// page reads a page, which may not be larger than a message.
func page(t *testing.T, b *bus.Bus, after string, running bool) (document.Transcript, error) {
	t.Helper()
	from, err := document.ParsePlace(after)
	if err != nil {
		t.Fatal(err)
	}
	p := document.Transcript{Running: running}
	err = transcript.ReadPage(t.Context(), b, to, attempt, from, &p)
	if data, bad := json.Marshal(p); bad != nil || len(data) > 600<<10 {
		t.Errorf("a page of %d bytes: %v", len(data), bad)
	}
	return p, err
}

// pages follows Next to the end, and returns the texts of all lines, and the last page.
func pages(t *testing.T, b *bus.Bus, after string, running bool) (all []string, last document.Transcript, n int) {
	t.Helper()
	for n = 1; ; n++ {
		p, err := page(t, b, after, running)
		if err != nil {
			t.Fatalf("page %d, after %q: %v", n, after, err)
		}
		for _, l := range p.Lines {
			all = append(all, l.Text)
		}
		if p.Next == "" {
			return all, p, n
		}
		after = p.Next
	}
}

// want compares texts with those that were written.
func want(t *testing.T, about string, got []string, written ...[]transcript.Line) {
	t.Helper()
	var texts []string
	for _, list := range written {
		for _, l := range list {
			texts = append(texts, l.Text)
		}
	}
	if !slices.Equal(got, texts) {
		t.Errorf("%s: %d lines, want %d; they begin with %.50q, want %.50q", about, len(got), len(texts), got, texts)
	}
}

// TestPage: page by page a transcript comes as a whole and once, while it is
// written, when it is stored as a whole, and when the stream has lost it; a
// place that was given out leads on from where it was.
func TestPage(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	if _, err := page(t, b, "", false); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("nothing is stored, and there is %v", err)
	}
	if p, err := page(t, b, "", true); err != nil || p.Next+p.Later != "" || p.Lines == nil {
		t.Errorf("nothing is written yet, and there is %+v, %v", p, err)
	}
	one := texts(0, 100, strings.Repeat(" word", 1000))
	tell(b, one...)
	got, last, n := pages(t, b, "", true)
	if want(t, "while it is written", got, one); n < 2 || last.Later == "" {
		t.Errorf("it has %d pages, and goes on at %q", n, last.Later)
	}
	two := texts(100, 30, strings.Repeat(" more", 1000))
	tell(b, two...)
	got, _, _ = pages(t, b, last.Later, true)
	want(t, "what came later", got, two)

	p, err := page(t, b, "", true)
	if err != nil {
		t.Fatal(err)
	}
	live, first := p.Next, len(p.Lines)
	store(t, b)
	got, last, _ = pages(t, b, live, false)
	if want(t, "on from a place of the stream", got, one[first:], two); last.Later != "" {
		t.Errorf("it has ended, and goes on at %q", last.Later)
	}
	three := texts(200, 3, "")
	tell(b, three...) // another claim
	got, _, n = pages(t, b, "", false)
	if want(t, "the whole, and what the stream has beside it", got, one, two, three); n < 2 {
		t.Errorf("it has %d pages", n)
	}
	p, _ = page(t, b, "", false)
	whole := p.Next

	s.DeleteStream(t, "FORGE_TRANSCRIPTS")
	s.Connect(t)
	if _, err := page(t, b, live, false); !errors.Is(err, transcript.ErrPlace) {
		t.Errorf("a place of a stream that is gone: %v", err)
	}
	tell(b, three...) // into another stream, under numbers that were there before
	if _, err := page(t, b, live, false); !errors.Is(err, transcript.ErrPlace) {
		t.Errorf("a place of another stream: %v", err)
	}
	got, _, _ = pages(t, b, whole, false)
	want(t, "on from a place of the whole", got, one[len(p.Lines):], two, three)
	if err := b.Objects.Delete(t.Context(), objects.TranscriptName(to, attempt)); err != nil {
		t.Fatal(err)
	}
	if _, err := page(t, b, whole, false); !errors.Is(err, transcript.ErrPlace) {
		t.Errorf("a place of a whole that was removed: %v", err)
	}
	p, err = page(t, b, "", true)
	if err != nil {
		t.Fatal(err)
	}
	place, err := document.ParsePlace(p.Later)
	if err != nil || place.Line != 3 {
		t.Fatalf("%q: %v", p.Later, err)
	}
	otherBatch, pastTheEnd := place, place
	otherBatch.Batch++
	pastTheEnd.Line++
	for _, made := range []string{"w99999", "s18446744073709551615.0.00000001", otherBatch.String(), pastTheEnd.String()} {
		if p, err := page(t, b, made, true); !errors.Is(err, transcript.ErrPlace) {
			t.Errorf("%s was made up, and leads to %+v, %v", made, p, err)
		}
	}
}

// TestPageOfOthers: what any worker may write to the stream and to the store harms no reader:
// a line of 8 MB, bytes that are no text, what moves a cursor or hides text, a secret,
// another project's name; and a stored whole that is damaged hides nothing of the stream.
func TestPageOfOthers(t *testing.T) {
	b := bustest.Start(t)
	evil := line(forge.ProgressText, "a\x1b[2Jb\u202ec ghp_0123456789abcdefghijklmnopqrstuvwxyz")
	evil.Project, evil.Intent, evil.Replica, evil.Kind = "bank", "secret", forge.ReplicaID(strings.Repeat("r\n", 5000)), "x\x1b]0;y\x07z"
	encoded := encode(t, evil)
	parts := []string{
		string(encoded), `{"kind":"text","text":"` + "\xff\xfe" + `"}`, "no JSON", `{"kind":"text","usage":{"cost_usd":1e999}}`,
		`{"kind":"text","text":"` + strings.Repeat("x", 200<<10) + `"}`, `{"kind":"text","text":"` + strings.Repeat("y", 500<<10) + `"}`,
		`{"at":"9999-12-31T23:59:59-23:00","kind":"text","text":"a year that JSON has not"}`,
	}
	for i, part := range parts {
		if err := b.Transcripts.Append(t.Context(), to, attempt, fmt.Sprint("evil/", i), []byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	check := func(about string, lines []document.TranscriptLine) {
		t.Helper()
		if len(lines) != len(parts) {
			t.Fatalf("%s: there are %+.300v", about, lines)
		}
		if l := lines[0]; l.Text != "ab<U+202E>c [redacted]" || l.Kind != "xz" && l.Kind != "x" || len(l.Replica) > 200 || strings.Contains(l.Replica, "\n") {
			t.Errorf("%s: a line is %+v", about, l)
		}
		if lines[1].Text != "\ufffd\ufffd" && lines[1].Text != "\ufffd" {
			t.Errorf("%s: bytes that are no text are %q", about, lines[1].Text)
		}
		for _, i := range []int{2, 3, 5, 6} {
			if l := lines[i]; l.Kind != document.Unreadable || l.Text != "" || l.Size < len(parts[i]) || l.Size > len(parts[i])+1 {
				t.Errorf("%s: line %d is %.100v", about, i, l)
			}
		}
		if l := lines[4]; len(l.Text) != 16<<10 || l.Size != 200<<10 {
			t.Errorf("%s: a long line has %d of %d bytes", about, len(l.Text), l.Size)
		}
	}
	p, err := page(t, b, "", false)
	if err != nil {
		t.Fatal(err)
	}
	check("in the stream", p.Lines)
	store(t, b)
	if p, err = page(t, b, "", false); err != nil || p.Note != "" {
		t.Fatal(p.Note, err)
	}
	check("as a whole", p.Lines)

	long := strings.Repeat("z", 8<<20)
	put := func(known string, content []byte) {
		t.Helper()
		err := b.Objects.Update(t.Context(), objects.TranscriptName(to, attempt), func(*objects.Object) (*objects.Object, error) {
			return &objects.Object{About: map[string]string{"transcript": known}, Content: content}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := `{"batches":{"evil":7}}`
	put(all, packed(t, `{"kind":"text","text":"`+long+`"}`+"\n"+string(encoded)))
	if p, err = page(t, b, "", false); err != nil || len(p.Lines) != 2 || p.Lines[0].Kind != document.Unreadable || p.Lines[0].Size < 8<<20 {
		t.Errorf("a line of 8 MB: %.200v, %v", p.Lines, err)
	}
	good := packed(t, strings.Repeat(string(encoded)+"\n", 3))
	for about, damage := range map[string]func(){
		"no gzip": func() { put(all, []byte("no gzip")) }, "cut off": func() { put(all, good[:len(good)-12]) }, "no description": func() { put("{", good) },
		"a count below 0": func() { put(`{"left_out":-5}`, good) }, "an empty one": func() { put(`{"left_out":7}`, packed(t, "")) },
		"too large": func() { put(all, packed(t, strings.Repeat(long+"\n", 3))) },
	} {
		damage()
		p, err := page(t, b, "", false)
		if err != nil || !strings.Contains(p.Note, "is damaged") || len(p.Lines) < len(parts) {
			t.Errorf("%s: %d lines, %q, %v", about, len(p.Lines), p.Note, err)
			continue
		}
		check(about, p.Lines[len(p.Lines)-len(parts):])
		if _, err := page(t, b, "w4000000", false); !errors.Is(err, transcript.ErrPlace) {
			t.Errorf("%s: a place behind the damage: %v", about, err)
		}
	}
}

// packed returns a text as it is stored.
func packed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if _, err := zip.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPageOfTooMuch: a transcript that lost its oldest lines says so once, and
// places count what was there before.
func TestPageOfTooMuch(t *testing.T) {
	b := bustest.Start(t)
	var text strings.Builder
	for i := range 10 {
		l := line(forge.ProgressText, fmt.Sprint(i))
		text.Write(append(encode(t, l), '\n'))
	}
	err := b.Objects.Update(t.Context(), objects.TranscriptName(to, attempt), func(*objects.Object) (*objects.Object, error) {
		return &objects.Object{About: map[string]string{"transcript": `{"left_out":300}`}, Content: packed(t, text.String())}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[string]string{"": "0 1 2", "w7": "0 1 2", "w300": "1 2 3", "w305": "6 7 8", "w308": "9"} {
		got, _, _ := pages(t, b, after, false)
		if text := strings.Join(got, " "); !strings.HasPrefix(text, want) || !strings.HasSuffix(text, "9") {
			t.Errorf("after %q there is %s", after, text)
		}
	}
	if _, err := page(t, b, "w310", false); !errors.Is(err, transcript.ErrPlace) {
		t.Errorf("after the end there is %v", err)
	}
}

// encode returns a line as it is written.
func encode(t *testing.T, l transcript.Line) []byte {
	t.Helper()
	data, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
