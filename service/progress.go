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
	maxProgressText = 4 << 10
	progressPerSec  = 20
	// storeTime is how long a result waits at most until the whole transcript is stored.
	storeTime = 3 * time.Second
)

// Progress tells how an attempt goes: whoever watches, and the transcript. Only
// Kind, Text, Agent and Usage are read. It never blocks for long and may be called
// by several goroutines. Who watches is spared what is too much: about twenty
// messages a second go through. The transcript gets all, within its limits.
type Progress func(forge.Progress)

// teller is where everything passes that an attempt tells while it runs: nothing of
// it leaves the worker with a secret or a terminal escape in it.
type reporter struct {
	attempt    *attempt
	transcript *transcript.Writer

	mu      sync.Mutex
	streams map[forge.ProgressKind]*redact.Stream // each kind is a text of its own
	limit   rate
}

func (a *attempt) newReporter() *reporter {
	cfg := transcript.Config{Bus: a.run.Bus.Transcripts, Dir: a.run.LogDir, Log: a.log}
	return &reporter{
		attempt: a, transcript: transcript.New(cfg, a.cmd.To, a.cmd.Attempt), streams: map[forge.ProgressKind]*redact.Stream{},
	}
}

// tell is a Progress.
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
		a.log.Debug("progress is lost", "err", err)
	}
}

// end stores what is left to be told, and the whole transcript.
func (t *reporter) end() {
	if !t.transcript.Close() {
		t.attempt.log.Warn("the transcript is not kept as a whole: its last lines could not be stored in time")
		return
	}
	t.attempt.keepTranscript()
}

// keepTranscript stores the whole transcript, of former lives of the attempt too, if
// there is one. Nothing hangs on it but some seconds.
func (a *attempt) keepTranscript() {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	if err := transcript.Store(ctx, a.run.Bus, a.cmd.To, a.cmd.Attempt); err != nil {
		a.log.Warn("the transcript is not kept as a whole; until it is old, its lines are in the stream", "err", err)
	}
}

func (t *reporter) stream(k forge.ProgressKind) *redact.Stream {
	s := t.streams[k]
	if s == nil {
		s = t.attempt.run.redactor().Stream()
		t.streams[k] = s
	}
	return s
}

// cut returns at most n bytes of a text, whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD")
}

// rate counts within the present second.
type rate struct {
	since time.Time
	n     int
}

func (r *rate) allow(now time.Time) bool {
	if now.Sub(r.since) >= time.Second {
		r.since, r.n = now, 0
	}
	r.n++
	return r.n <= progressPerSec
}
