package transcript_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// tell writes lines of the attempt, in a delivery of its own.
func tell(b *bus.Bus, lines ...transcript.Line) {
	w := transcript.New(transcript.Config{Bus: b.Transcripts, Log: slog.New(slog.DiscardHandler)}, to, attempt)
	for _, l := range lines {
		w.Add(l)
	}
	w.Close()
}

func texts(from, n int, pad string) []transcript.Line {
	var list []transcript.Line
	for i := range n {
		list = append(list, line(forge.ProgressText, fmt.Sprint(from+i, pad)))
	}
	return list
}

func store(t *testing.T, b *bus.Bus) {
	t.Helper()
	if err := transcript.Store(t.Context(), b, to, attempt); err != nil {
		t.Fatal(err)
	}
}

// object returns what the object store has of the attempt, as any client reads it.
func object(t *testing.T, b *bus.Bus) []byte {
	t.Helper()
	var packed bytes.Buffer
	if err := b.Objects.Get(t.Context(), objects.TranscriptName(to, attempt), &packed); err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestStore checks that an object has all that the stream has of an attempt, whoever
// stores it when, and keeps what the stream loses.
func TestStore(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	store(t, b) // there is nothing
	if list, err := b.Objects.List(t.Context(), objects.Name{}); err != nil || len(list) != 0 {
		t.Fatalf("an attempt without a transcript has %v, %v", list, err)
	}
	tell(b, texts(0, 30, strings.Repeat(" word", 1000))...) // some batches
	store(t, b)
	var storing sync.WaitGroup
	for i := range 4 { // claims and deliveries, stored by several
		tell(b, texts(100*(i+1), 3, "")...)
		other := s.Connect(t)
		storing.Go(func() { store(t, other) })
	}
	storing.Wait()
	want := stored(t, b)
	if diff := cmp.Diff(want, transcript.Parse(object(t, b))); diff != "" || len(want) != 30+4*3 {
		t.Fatalf("%d lines: %s", len(want), diff)
	}
	lost, err := transcript.FindArchived(t.Context(), b, subjects.TranscriptFilter{Project: to.Project})
	if err != nil || len(lost) != 0 {
		t.Errorf("the stream has lost %v, %v", lost, err)
	}

	s.DeleteStream(t, "FORGE_TRANSCRIPTS")
	s.Connect(t)
	more := texts(1000, 3, "")
	tell(b, more...)
	store(t, b)
	store(t, b)
	if diff := cmp.Diff(append(want, more...), transcript.Parse(object(t, b))); diff != "" {
		t.Error(diff)
	}
	for filter, n := range map[subjects.TranscriptFilter]int{
		{Project: to.Project}: 1, {Task: attempt.Task, Step: attempt.Step, Number: attempt.Number}: 1,
		{Project: "blog"}: 0, {Step: forge.StepReview}: 0, {Number: 3}: 0,
	} {
		if lost, err = transcript.FindArchived(t.Context(), b, filter); err != nil || len(lost) != n {
			t.Errorf("%+v: the stream has lost %v, %v", filter, lost, err)
		}
	}
	lost, err = transcript.FindArchived(t.Context(), b, subjects.TranscriptFilter{})
	if err != nil || len(lost) != 1 {
		t.Fatal(lost, err)
	}
	lines, err := lost[0].Read(t.Context(), b)
	if diff := cmp.Diff(append(want, more...), lines); diff != "" || err != nil {
		t.Error(diff, err)
	}
	batches, err := b.Transcripts.Read(t.Context(), to, attempt)
	if err != nil || len(batches) != 1 || !lost[0].Has(batches[0].ID) || lost[0].Has("another/0") {
		t.Errorf("it does not know %v, %v", batches, err)
	}
}

// TestStoreTooMuch checks that the newest lines are kept, and that it is said how many
// are not.
func TestStoreTooMuch(t *testing.T) {
	testsize.OnlyFull(t)
	b := bustest.Start(t)
	pad := strings.Repeat(" word", 3000)
	const n, deliveries = 40, 20 // of 15 KB each, less than what may wait to be stored
	total := 0
	for range deliveries {
		tell(b, texts(total, n, pad)...)
		total += n
		store(t, b)
	}
	text := object(t, b)
	if len(text) > transcript.MaxWhole+1<<10 || len(text) < transcript.MaxWhole-20<<10 {
		t.Errorf("%d bytes are stored, want about %d", len(text), transcript.MaxWhole)
	}
	got := transcript.Parse(text)
	want := fmt.Sprintf("%d lines before this one are left out: a transcript is kept up to 8 MiB", total-len(got)+1)
	if got[0].Text != want || got[0].Task != attempt.Task || got[0].Attempt != attempt.Number {
		t.Errorf("the first line is %+v, want %q", got[0], want)
	}
	all := stored(t, b)
	if diff := cmp.Diff(all[total-len(got)+1:], got[1:]); diff != "" {
		t.Error(diff)
	}
}

// TestLostBeginning checks that the stream's own bound shows: of an attempt whose first
// lines had to make room, the object is needed.
func TestLostBeginning(t *testing.T) {
	s := bustest.StartServer(t)
	b := s.Connect(t)
	for i := range 3 {
		tell(b, texts(i, 1, "")...)
	}
	store(t, b)
	for keep := int64(3); keep >= 0; keep-- {
		s.Forget(t, "FORGE_TRANSCRIPTS", max(keep, 1))
		lost, err := transcript.FindArchived(t.Context(), b, subjects.TranscriptFilter{})
		if err != nil || (len(lost) > 0) != (keep < 3) {
			t.Errorf("with %d of 3 in the stream: %v, %v", keep, lost, err)
		}
	}
}
