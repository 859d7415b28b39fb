package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/bus/transcripts"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

var (
	to      = forge.Key{Project: "shop", Intent: "fix"}
	attempt = forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 2, Claim: 1}
	began   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func line(kind forge.ProgressKind, text string) transcript.Line {
	return transcript.Of(&forge.Progress{To: to, Attempt: attempt, Replica: "a", Kind: kind, Text: text, At: began})
}

// stored returns what a bus has of the attempt.
func stored(t *testing.T, b *bus.Bus) []transcript.Line {
	t.Helper()
	ctx := wait.Context(t)
	end := errors.New("end")
	var lines []transcript.Line
	err := b.Transcripts.Follow(ctx, subjects.TranscriptFilter{Task: "fix-001"}, 0, time.Time{}, transcripts.Follower{
		Lines: func(_ forge.Key, _ forge.Attempt, _ uint64, text []byte) error {
			lines = append(lines, transcript.Parse(text)...)
			return nil
		},
		CaughtUp: func() error { return end },
	})
	if !errors.Is(err, end) {
		t.Fatal(err)
	}
	return lines
}

func TestWriter(t *testing.T) {
	b, dir := bustest.Start(t), filepath.Join(t.TempDir(), "logs")
	cfg := transcript.Config{Bus: b.Transcripts, Dir: dir, Log: slog.New(slog.DiscardHandler)}
	usage := line(forge.ProgressUsage, "")
	usage.Usage = &transcript.Usage{InputTokens: 5, CostUSD: 0.25, Calls: 1}
	want := []transcript.Line{line(forge.ProgressStarted, ""), line(forge.ProgressText, "a <b> \"c\""), usage, line(forge.ProgressEnded, "ok")}
	for range 2 { // delivered twice
		w := transcript.New(cfg, to, attempt)
		for _, l := range want {
			w.Add(l)
		}
		w.Close()
		w.Close()
		w.Add(line(forge.ProgressText, "too late"))
	}
	want = append(want, want...)
	if diff := cmp.Diff(want, stored(t, b)); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(filepath.Join(dir, "fix-001-implement-2.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, transcript.Parse(text)); diff != "" {
		t.Error(diff)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if want := `{"at":"2026-03-01T12:00:00Z","project":"shop","intent":"fix","task":"fix-001","step":"implement","attempt":2,"claim":1,` +
		`"replica":"a","kind":"started"}`; first != want {
		t.Errorf("got %s", first)
	}
}

// TestNothing checks that an attempt of which nothing is told leaves nothing.
func TestNothing(t *testing.T) {
	b, dir := bustest.Start(t), t.TempDir()
	w := transcript.New(transcript.Config{Bus: b.Transcripts, Dir: dir, Log: slog.New(slog.DiscardHandler)}, to, attempt)
	w.Add(line(forge.ProgressStarted, ""))
	w.Add(line(forge.ProgressEnded, "ok"))
	w.Close()
	if got := stored(t, b); len(got) != 0 {
		t.Error(got)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Error(entries, err)
	}
}

// TestFailedAtOnce checks that why an attempt failed is kept, also if nothing else is
// known of it.
func TestFailedAtOnce(t *testing.T) {
	b := bustest.Start(t)
	w := transcript.New(transcript.Config{Bus: b.Transcripts, Log: slog.New(slog.DiscardHandler)}, to, attempt)
	want := []transcript.Line{line(forge.ProgressStarted, ""), line(forge.ProgressEnded, "auth")}
	for _, l := range want {
		w.Add(l)
	}
	w.Close()
	if diff := cmp.Diff(want, stored(t, b)); diff != "" {
		t.Error(diff)
	}
}

// sink stores everything.
type sink struct{ text []byte }

func (s *sink) Append(_ context.Context, _ forge.Key, _ forge.Attempt, _ string, lines []byte) error {
	s.text = append(s.text, lines...)
	return nil
}

// TestTooMuch checks that of what is too much the first lines are kept and the last.
func TestTooMuch(t *testing.T) {
	for _, n := range []int{250, 400} { // little more than fits at first, and much more
		synctest.Test(t, func(t *testing.T) {
			var s sink
			w := transcript.New(transcript.Config{Bus: &s, Log: slog.New(slog.DiscardHandler)}, to, attempt)
			pad := strings.Repeat(" word", 10_000)
			for i := range n {
				w.Add(line(forge.ProgressText, fmt.Sprint(i, pad)))
				synctest.Wait() // nothing is lost because it comes too fast
			}
			w.Add(line(forge.ProgressEnded, "ok"))
			if !w.Close() {
				t.Error("not everything is stored")
			}
			checkEnds(t, n, transcript.Parse(s.text))
		})
	}
}

// checkEnds checks that of n lines those that fit are there, and what is said of the others.
func checkEnds(t *testing.T, n int, got []transcript.Line) {
	t.Helper()
	size, gap := 0, -1
	for i, l := range got {
		if len(l.Text) > transcript.MaxText {
			t.Fatalf("a text has %d bytes", len(l.Text))
		}
		if size += len(l.Text); strings.HasPrefix(l.Text, "this is more than 3 MiB") {
			gap = i
		}
	}
	if size > transcript.MaxBytes || size < transcript.MaxBytes*9/10 && n == 400 {
		t.Errorf("%d: %d bytes are stored", n, size)
	}
	end := len(got) - 1
	if gap < 0 || got[end].Kind != forge.ProgressEnded {
		t.Fatalf("%d: nothing says what is missing, or the last line is %v", n, got[end].Kind)
	}
	first := gap + 1
	if n == 400 {
		if want := fmt.Sprintf("%d lines before this one are left out: this is more than 4 MiB", n-(end-2)); got[first].Text != want {
			t.Errorf("%q is said, want %q", got[first].Text, want)
		}
		first++
	}
	for i, l := range got[:gap] {
		if !strings.HasPrefix(l.Text, fmt.Sprint(i, " ")) {
			t.Fatalf("%d: line %d begins %.10s", n, i, l.Text)
		}
	}
	for i, l := range got[first:end] {
		if !strings.HasPrefix(l.Text, fmt.Sprint(n-(end-first)+i, " ")) {
			t.Fatalf("%d: line %d from the end begins %.10s", n, end-first-i, l.Text)
		}
	}
}

// flaky refuses every other time, after it has stored the lines.
type flaky struct {
	mu     sync.Mutex
	calls  int
	stored map[string]string
	order  []string
	called chan struct{} // holds an element for each batch that is known to be stored
}

func (f *flaky) Append(_ context.Context, _ forge.Key, _ forge.Attempt, id string, lines []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls++; f.stored[id] == "" {
		f.stored[id] = string(lines)
		f.order = append(f.order, id)
	} else if f.stored[id] != string(lines) {
		f.stored[id] += "(and other lines under the same id)"
	}
	if f.calls%2 == 1 {
		return errors.New("no answer")
	}
	f.called <- struct{}{}
	return nil
}

// TestUnanswered checks that a batch that may be stored already is repeated as it
// is, and is in the file once.
func TestUnanswered(t *testing.T) {
	f, dir := &flaky{stored: map[string]string{}, called: make(chan struct{}, 100)}, t.TempDir()
	w := transcript.New(transcript.Config{Bus: f, Dir: dir, Log: slog.New(slog.DiscardHandler)}, to, attempt)
	var want []transcript.Line
	for i := range 20 {
		l := line(forge.ProgressText, fmt.Sprint(i, strings.Repeat(" word", 3000)))
		want = append(want, l)
		w.Add(l)
	}
	for range 5 { // batches
		wait.For(t, f.called)
	}
	w.Close()
	var got strings.Builder
	for _, id := range f.order {
		got.WriteString(f.stored[id])
	}
	if diff := cmp.Diff(want, transcript.Parse([]byte(got.String()))); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(filepath.Join(dir, "fix-001-implement-2.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(text) {
		t.Error("the file is another one")
	}
}

// TestLink checks that a link in the place of a file leads nowhere.
func TestLink(t *testing.T) {
	b, dir := bustest.Start(t), t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "fix-001-implement-2.ndjson")); err != nil {
		t.Fatal(err)
	}
	w := transcript.New(transcript.Config{Bus: b.Transcripts, Dir: dir, Log: slog.New(slog.DiscardHandler)}, to, attempt)
	w.Add(line(forge.ProgressText, "x"))
	w.Close()
	if _, err := os.Stat(elsewhere); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if got := stored(t, b); len(got) != 1 {
		t.Error(got)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
