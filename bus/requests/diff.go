package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

// largeAtOnce bounds the changes and transcripts that are read at the same time. A change is
// read as a whole for every page of it, and takes up to about 30 MB of the memory of the runner
// meanwhile; of a transcript that is its compressed whole. Two changes that are compared take
// some two hundred, so nothing is read beside them.
const largeAtOnce = 4

// diff answers with a document.Diff: a page of the change of an attempt. Everybody who may see
// the intent may see it. It answers 400 for a request that names a field wrong, 404 for an
// attempt that is not there or whose change is not stored, 409 for a stored change that is not
// the journal's, and 429 while too many are read.
func (e *endpoints) diff(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var req document.DiffRequest
	err := readRequest(r.Data(), func(o *jsonObject) {
		o.text("intent", (*string)(&req.Intent))
		o.text("task", (*string)(&req.Task))
		o.text("step", (*string)(&req.Step))
		o.whole("attempt", &req.Attempt)
		o.whole("since", &req.Since)
		o.read("stat", &req.Stat, "true or false")
		o.text("after", &req.After)
		o.only("intent", "task", "step", "attempt", "since", "stat", "after")
		*o.errs = append(*o.errs, req.Check()...)
	})
	if err != nil {
		return nil, err
	}
	var d document.Diff
	share := int64(1)
	if req.Since != 0 {
		share = largeAtOnce
	}
	err = e.readLarge(ctx, share, forge.Key{Project: from.Project, Intent: req.Intent}, func() (err error) {
		d, err = e.cfg.Diff(ctx, from.Project, req)
		return err
	})
	d.Page(req)
	return d, err
}

// transcript answers with a document.Transcript: a page of what was done in an attempt.
// Everybody who may see the intent may see it. It answers as diff does; 409 is for a place that
// is not there any more.
func (e *endpoints) transcript(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var req document.TranscriptRequest
	err := readRequest(r.Data(), func(o *jsonObject) {
		o.text("intent", (*string)(&req.Intent))
		o.text("task", (*string)(&req.Task))
		o.text("step", (*string)(&req.Step))
		o.whole("attempt", &req.Attempt)
		o.text("after", &req.After)
		o.only("intent", "task", "step", "attempt", "after")
		*o.errs = append(*o.errs, req.Check()...)
	})
	if err != nil {
		return nil, err
	}
	var t document.Transcript
	err = e.readLarge(ctx, 1, forge.Key{Project: from.Project, Intent: req.Intent}, func() (err error) {
		t, err = e.cfg.Transcript(ctx, from.Project, req)
		return err
	})
	return t, err
}

// readLarge calls read for something of an intent when there is room for a share of
// largeAtOnce, and returns its error as whoever asks is told it.
func (e *endpoints) readLarge(ctx context.Context, share int64, of forge.Key, read func() error) error {
	if e.large.Acquire(ctx, share) != nil {
		return &errCode{"429", []RefusedField{{Reason: "too many changes and transcripts are read at once; try again"}}}
	}
	defer e.large.Release(share)
	err := read()
	if errors.Is(err, conn.ErrNotFound) {
		return &errCode{"404", []RefusedField{{"intent", fmt.Sprintf("there is no intent %q in project %q", of.Intent, of.Project)}}}
	}
	if refused, ok := errors.AsType[*RequestError](err); ok {
		return &errCode{strconv.Itoa(refused.Code), refused.Fields}
	}
	return err
}

// Diff asks a runner for a page of the change of an attempt, as List does, and returns a
// document.Diff.
func (ss *Submissions) Diff(ctx context.Context, project forge.ProjectID, gateway string, r document.DiffRequest) (json.RawMessage, error) {
	return ss.look(ctx, project, gateway, subjects.VerbDiff, r)
}

// Transcript asks a runner for a page of what was done in an attempt, as List does, and returns
// a document.Transcript.
func (ss *Submissions) Transcript(ctx context.Context, project forge.ProjectID, gateway string, r document.TranscriptRequest) (json.RawMessage, error) {
	return ss.look(ctx, project, gateway, subjects.VerbTranscript, r)
}
