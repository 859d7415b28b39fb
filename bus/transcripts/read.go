package transcripts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// transcriptID begins the message ids of transcripts.
const transcriptID = "transcript/"

// Batch is lines of a transcript as they were appended.
type Batch struct {
	// ID is the one under which they were appended.
	ID  string
	Seq uint64
	// At is the time at which the server stored them.
	At    time.Time
	Lines []byte
}

// Read returns the stored lines of an attempt, of all its claims, in order: everything that was
// appended before it was called.
func (ts *Stream) Read(ctx context.Context, to forge.Key, a forge.Attempt) ([]Batch, error) {
	filter, err := attemptFilter(to, a)
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	newest, err := ts.conn.Last(ctx, streams.Transcripts, filter)
	if errors.Is(err, conn.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read transcript: %w", err)
	}
	for attempt := 0; ; attempt++ {
		var list []Batch
		last, err := ts.conn.Each(ctx, streams.Transcripts, filter, func(m conn.Stored) error {
			at, err := m.At()
			list = append(list, Batch{batchID(m.Header.Get(jetstream.MsgIDHeader)), m.Seq, at, m.Data})
			return err
		})
		if err != nil || last >= newest.Seq {
			return list, err
		}
		if err := conn.Sleep(ctx, conn.Backoff(attempt)); err != nil { // a replica answered that is behind
			return nil, fmt.Errorf("read transcript: no replica has message %d: %w", newest.Seq, err)
		}
	}
}

// attemptFilter returns the subject of an attempt's lines, of all its claims. What is left out
// of the attempt is an error: it would match those of others.
func attemptFilter(to forge.Key, a forge.Attempt) (string, error) {
	if err := subjects.CheckIntent(to); err != nil {
		return "", err
	}
	if a.Step == "" || a.Number < 1 {
		return "", fmt.Errorf("%s is no attempt", a)
	}
	filter, err := subjects.Transcripts(subjects.TranscriptFilter{Project: to.Project, Intent: to.Intent, Task: a.Task, Step: a.Step, Number: a.Number})
	if err == nil && a.Task == "" {
		t := strings.Split(filter, ".")
		t[4] = subjects.None
		filter = strings.Join(t, ".")
	}
	return filter, err
}

// batchID returns the id under which lines were appended.
func batchID(header string) string { return strings.TrimPrefix(header, transcriptID) }

// Oldest returns where a project's transcripts begin in the stream: what was appended before is
// not in it any more. The sequence is 0 if nothing of the project is in it.
func (ts *Stream) Oldest(ctx context.Context, project forge.ProjectID) (seq uint64, at time.Time, err error) {
	filter, err := subjects.Transcripts(subjects.TranscriptFilter{Project: project})
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("look for transcripts: %w", err)
	}
	m, err := ts.conn.First(ctx, streams.Transcripts, filter)
	if errors.Is(err, conn.ErrNotFound) {
		return 0, time.Time{}, nil
	}
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("look for transcripts: %w", err)
	}
	at, err = m.At()
	return m.Seq, at, err
}
