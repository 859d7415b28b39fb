package repository

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
)

// maxTranscript bounds a transcript, in bytes.
const maxTranscript = 4 << 20

// transcript is a file with what happened in an attempt, line by line, for people.
// It is made with the first line. That it cannot be written stops nobody's work.
type transcript struct {
	path string // empty: none is kept
	log  *slog.Logger

	mu   sync.Mutex
	file *os.File
	size int64
	done bool // nothing more is written
}

// newTranscript is appended to when the attempt is delivered again.
func newTranscript(host *Host, cmd *forge.Command) *transcript {
	t := &transcript{log: host.Log}
	if host.LogDir != "" {
		of := string(cmd.Attempt.Task)
		if of == "" {
			of = string(cmd.To.Intent)
		}
		t.path = filepath.Join(host.LogDir, fmt.Sprintf("%s-%s-%d.log", of, cmd.Attempt.Step, cmd.Attempt.Number))
	}
	return t
}

// note adds an event, whose text is safe to show.
func (t *transcript) note(e agent.Event, at time.Time) {
	text := e.Text
	switch e.Kind {
	case agent.EventStarted:
		text = fmt.Sprintf("model %s, session %s", e.Model, e.Session)
	case agent.EventTool:
		text = e.Tool + " " + e.Text
	case agent.EventUsage:
		return
	case agent.EventText, agent.EventWaiting, agent.EventThinking, agent.EventToolFailed, agent.EventCompacting, agent.EventOutput:
	}
	t.write(fmt.Sprintf("%s %-7s %s\n", at.UTC().Format(time.TimeOnly), e.Kind, text))
}

func (t *transcript) write(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done || t.path == "" {
		return
	}
	if t.file == nil {
		if err := t.open(); err != nil {
			t.done = true
			t.log.Warn("cannot keep a transcript", "path", t.path, "error", err)
			return
		}
	}
	if t.size += int64(len(line)); t.size > maxTranscript {
		t.done = true
		line = "the rest is left out\n"
	}
	if _, err := t.file.WriteString(line); err != nil {
		t.done = true
		t.log.Warn("cannot keep a transcript", "path", t.path, "error", err)
	}
}

func (t *transcript) open() error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(t.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	t.file, t.size = f, info.Size()
	return nil
}

func (t *transcript) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = true
	if t.file != nil {
		_ = t.file.Close()
	}
}
