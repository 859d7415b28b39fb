package service

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

const (
	// maxProgressText bounds the text of one message to watchers, in bytes.
	maxProgressText = 4 << 10
	// progressPerSec bounds the messages to watchers of one attempt.
	progressPerSec = 20
	// storeTime is how long a result waits at most until the whole transcript is
	// stored.
	storeTime = 3 * time.Second
)

// Progress reports a line of what an attempt does, to watchers and to the transcript.
// Only Kind, Text, Agent and Usage are read. It never blocks for long and is safe for
// concurrent use. Watchers get about twenty messages a second, the transcript all of
// them, within its limits.
type Progress func(forge.Progress)

// reporter receives everything that an attempt reports while it runs, and passes it
// on without secrets and terminal escapes.
type reporter struct {
	attempt    *attempt
	transcript *transcript.Writer

	mu sync.Mutex
	// streams has a redactor for each kind of text, because a secret may be split
	// over two messages.
	streams map[forge.ProgressKind]*redact.Stream
	// limit protects watchers.
	limit rate
}

// newReporter returns the attempt's reporter; its end must be called.
func (a *attempt) newReporter() *reporter {
	cfg := transcript.Config{Bus: a.run.Bus.Transcripts, Dir: a.run.LogDir, Log: a.log}
	return &reporter{
		attempt: a, transcript: transcript.New(cfg, a.cmd.To, a.cmd.Attempt), streams: map[forge.ProgressKind]*redact.Stream{},
	}
}

// report implements Progress.
func (t *reporter) report(p forge.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.attempt
	now := time.Now()
	p.To, p.Attempt, p.Replica, p.At = a.cmd.To, a.cmd.Attempt, a.run.Replica, now.UTC()
	p.Text = t.stream(p.Kind).Text(term.Sanitize(p.Text))
	t.transcript.Add(transcript.Of(&p))
	if !t.limit.allow(now) && p.Kind != forge.ProgressStarted && p.Kind != forge.ProgressEnded {
		return
	}
	p.Text = cut(p.Text, maxProgressText)
	if err := a.run.Bus.Live.Progress(p); err != nil {
		a.log.Debug("progress is lost", "error", err)
	}
}

// end flushes the transcript's last lines and stores it as a whole. It comes before
// the result is published, so that whoever waits for the result finds the transcript
// complete.
func (t *reporter) end() {
	if !t.transcript.Close() {
		t.attempt.log.Warn("the transcript is not kept as a whole: its last lines could not be stored in time")
		return
	}
	// A gateway runs no agent and no command, and its account reads no
	// transcripts: what little it has said is in the stream.
	if t.attempt.cmd.Attempt.Step.Service() != "gateway" {
		t.attempt.keepTranscript()
	}
}

// keepTranscript stores the whole transcript, including lines of earlier processes. A
// failure costs nothing but some seconds: the lines are still in the stream.
func (a *attempt) keepTranscript() {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := transcript.Store(ctx, a.run.Bus, a.cmd.To, a.cmd.Attempt); err != nil {
		a.log.Warn("the transcript is not kept as a whole; until it is old, its lines are in the stream", "error", err)
	}
}

// stream returns the redactor of a kind.
func (t *reporter) stream(k forge.ProgressKind) *redact.Stream {
	s := t.streams[k]
	if s == nil {
		s = t.attempt.run.redactor().Stream()
		t.streams[k] = s
	}
	return s
}

// cut returns at most n bytes of a text, without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD")
}

// rate counts messages within the present second.
type rate struct {
	since time.Time
	n     int
}

// allow counts a message, and reports whether it is within the limit.
func (r *rate) allow(now time.Time) bool {
	if now.Sub(r.since) >= time.Second {
		r.since, r.n = now, 0
	}
	r.n++
	return r.n <= progressPerSec
}
