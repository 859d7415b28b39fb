package service_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/internal/testoutput"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/service"
)

// whole returns the transcript of an attempt that is in the object store.
func whole(t *testing.T, b *bus.Bus, a forge.Attempt) []transcript.Line {
	t.Helper()
	o, err := b.Objects.Read(wait.Context(t), objects.TranscriptName(key, a))
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(o.Content))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return transcript.Parse(text)
}

// same checks that the object of an attempt has just the lines that the stream has.
func same(t *testing.T, b *bus.Bus, a forge.Attempt) {
	t.Helper()
	var want []transcript.Line
	for _, l := range kept(t, b) {
		if l.Attempt == a.Number {
			want = append(want, l)
		}
	}
	if len(want) == 0 {
		t.Error("the stream has nothing")
	}
	if diff := cmp.Diff(want, whole(t, b, a)); diff != "" {
		t.Errorf("%s: %s", a, diff)
	}
}

func says(tell service.Progress, text string) {
	tell(forge.Progress{Kind: forge.ProgressText, Text: text})
}

// TestWholeTranscript checks that who has the result finds the whole transcript,
// however the attempt ended.
func TestWholeTranscript(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	began := make(chan int, 1)
	w := worker(t, b, func(ctx context.Context, cmd forge.Command, tell service.Progress) forge.Result {
		switch cmd.Attempt.Number {
		case 1:
			for range 300 {
				says(tell, "a \x1b[31mred\x1b[0m word"+strings.Repeat(" word", 200)) // several batches
			}
			return found()
		case 2:
			says(tell, "on it")
			return forge.Result{Output: &forge.Failure{Reason: forge.FailTimeout, Message: "too long"}}
		case 3:
			says(tell, "on it")
			began <- 3
			<-ctx.Done()
			return forge.Result{Output: &forge.Failure{Reason: forge.FailKilled, Message: "killed"}}
		case 4:
			panic("a bug")
		}
		return found() // says nothing
	})
	w.Parallel, w.Recheck = 1, 20*time.Millisecond
	workerRun(t, w)
	r.start(analyze(1))
	r.result()
	same(t, b, analyze(1).Attempt)
	for _, l := range whole(t, b, analyze(1).Attempt) {
		if strings.Contains(l.Text, "\x1b") {
			t.Fatalf("it has %q", l.Text)
		}
	}
	r.start(analyze(2))
	r.result()
	same(t, b, analyze(2).Attempt)
	r.start(analyze(3))
	wait.For(t, began)
	r.none() // the third is not wanted any more
	same(t, b, analyze(3).Attempt)
	r.start(analyze(4))
	r.result()
	same(t, b, analyze(4).Attempt)
	if list, err := b.Objects.List(t.Context(), objects.Name{}); err != nil || len(list) != 4 {
		t.Errorf("an attempt that said nothing has an object too: %v, %v", list, err)
	}
}

// TestWholeTranscriptAfterKill checks that whoever finishes an attempt stores what those
// said who were killed, also if all that is left to do is to drop it.
func TestWholeTranscriptAfterKill(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	r := newRunner(t, b)
	for _, n := range []int{1, 2} { // before anything is stored as a whole
		life := transcript.New(transcript.Config{Bus: b.Transcripts, Log: slog.New(slog.DiscardHandler)}, key, analyze(n).Attempt)
		life.Add(transcript.Of(&forge.Progress{To: key, Attempt: analyze(n).Attempt, Replica: "w2", Kind: forge.ProgressText, Text: "first"}))
		life.Close()
	}
	w := worker(t, b, func(_ context.Context, _ forge.Command, tell service.Progress) forge.Result {
		says(tell, "second")
		return found()
	})
	w.Parallel = 1
	workerRun(t, w)
	r.start(analyze(1))
	r.result()
	same(t, b, analyze(1).Attempt)
	r.want()
	r.dispatch(forge.Effects{Commands: []forge.Command{analyze(2)}})
	r.none()
	same(t, b, analyze(2).Attempt)
	if n := len(whole(t, b, analyze(2).Attempt)); n != 1 {
		t.Errorf("the attempt that was dropped has %d lines", n)
	}
}

// TestTwoReplicasOneTranscript checks that a replica that lost an attempt and the one
// that took it over keep what both said, whoever ends first.
func TestTwoReplicasOneTranscript(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	r := newRunner(t, b)
	first, second := newBlocked(), newBlocked()
	saying := func(text string, work do) do {
		return func(ctx context.Context, c forge.Command, tell service.Progress) forge.Result {
			says(tell, text)
			res := work(ctx, c, tell)
			says(tell, text+" ends")
			return res
		}
	}
	old := worker(t, s.Connect(t), saying("first", first.do))
	next := worker(t, s.Connect(t), saying("second", second.do))
	var stops []func()
	var ends []<-chan error
	for _, w := range []*service.Worker{old, next} {
		w.Handlers[0].Agent, w.Shared, w.Parallel, w.Recheck = true, true, 1, 20*time.Millisecond
	}
	start := func(w *service.Worker) {
		stop, ended := drained(t, w)
		stops, ends = append(stops, stop), append(ends, ended)
	}
	start(old)
	r.start(analyze(1))
	wait.For(t, first.began)
	start(next) // the next life of the same replica
	wait.For(t, second.began)
	close(second.released)
	r.result()
	for i, stop := range stops {
		stop()
		if err := wait.For(t, ends[i]); err != nil {
			t.Error(err)
		}
	}
	same(t, b, analyze(1).Attempt)
	var said []string
	for _, l := range whole(t, b, analyze(1).Attempt) {
		if l.Kind == forge.ProgressText {
			said = append(said, l.Text)
		}
	}
	if len(said) != 4 {
		t.Errorf("they said %q", said)
	}
}

// TestWholeTranscriptCannotBeKept checks that nothing happens to an attempt whose
// transcript the object store does not take, but a warning in the log.
func TestWholeTranscriptCannotBeKept(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*testing.T, *bustest.Server){
		"full": func(t *testing.T, s *bustest.Server) { t.Helper(); s.Fill(t, "OBJ_FORGE_TRANSCRIPTS") },
		"gone": func(t *testing.T, s *bustest.Server) { t.Helper(); s.DeleteStream(t, "OBJ_FORGE_TRANSCRIPTS") },
	} {
		t.Run(name, func(t *testing.T) {
			s := bustest.StartServer(t)
			b := s.Connect(t)
			r := newRunner(t, b)
			var log testoutput.Output
			w := worker(t, b, func(_ context.Context, _ forge.Command, tell service.Progress) forge.Result {
				says(tell, "on it")
				return found()
			})
			w.Log = slog.New(slog.NewTextHandler(&log, nil))
			workerRun(t, w)
			harm(t, s)
			r.start(analyze(1))
			if got := r.result(); got.Failure() != nil || forge.As[*forge.Analysis](got.Output) == nil {
				t.Errorf("it reports %+v", got)
			}
			if !strings.Contains(log.String(), "the transcript is not kept as a whole") {
				t.Errorf("the log says %s", log.String())
			}
			if n := len(kept(t, b)); n != 3 {
				t.Errorf("the stream has %d lines", n)
			}
		})
	}
}
