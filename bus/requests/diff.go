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
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
)

// largeAtOnce bounds the changes, transcripts and timelines that are read at the
// same time. A change is read as a whole for every page of it, and takes up to
// about 30 MB of the memory of the runner meanwhile; of a transcript that is its
// compressed whole. Two changes that are compared take some two hundred, and an
// audit reads all journals of a project, so nothing is read beside those.
const largeAtOnce = 4

// pageRequest asks for a page of something large of an intent or a project.
type pageRequest interface {
	Check() []forge.FieldError
	// Of returns the intent that it is about; empty for a project.
	Of() forge.IntentID
}

// page returns the answer to requests for a page of something large: 400 for a
// request that names a field wrong, 404 for what is not there or not stored, 409
// for what is not the journal's, or for a place that is not there any more, 429
// while too much is read, and 503 for what a newer version wrote or what takes
// too long to read. share says how much of largeAtOnce a request takes; nil: one.
func page[R any, P interface {
	*R
	pageRequest
}, A any](e *endpoints, share func(P) int64, read func(context.Context, forge.ProjectID, R) (A, error)) answering {
	return func(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
		var req R
		if err := readRequest(r.Data(), func(o *jsonobject.Object) { o.Fill(P(&req)) }); err != nil {
			return nil, err
		}
		var answer A
		room := int64(1)
		if share != nil {
			room = share(&req)
		}
		// Whoever asks waits as long as an answer may take, and is to be told
		// if that is not enough.
		ctx, cancel := context.WithTimeout(ctx, e.limit*9/10)
		defer cancel()
		err := e.readLarge(ctx, room, forge.Key{Project: from.Project, Intent: P(&req).Of()}, func() (err error) {
			answer, err = read(ctx, from.Project, req)
			return err
		})
		return answer, err
	}
}

// alone is the share of a request that takes all the room that there is.
func alone[P any](P) int64 { return largeAtOnce }

// small is the share of a request that takes no room: its answer is in memory
// already, and whoever waits until it is keeps none of the others from being read.
func small[P any](P) int64 { return 0 }

// compares returns the share of a request for a change.
func compares(r *document.DiffRequest) int64 {
	if r.Since != 0 {
		return largeAtOnce
	}
	return 1
}

// readLarge calls read for something of an intent when there is room for a share of
// largeAtOnce, and returns its error as whoever asks is told it.
func (e *endpoints) readLarge(ctx context.Context, share int64, of forge.Key, read func() error) error {
	if e.large.Acquire(ctx, share) != nil {
		return &errCode{"429", []RefusedField{{Reason: "too much is read at once; try again"}}}
	}
	defer e.large.Release(share)
	err := read()
	if errors.Is(err, conn.ErrNotFound) {
		return &errCode{"404", []RefusedField{{"intent", fmt.Sprintf("there is no intent %q in project %q", of.Intent, of.Project)}}}
	}
	if refused, ok := errors.AsType[*RequestError](err); ok {
		return &errCode{strconv.Itoa(refused.Code), refused.Fields}
	}
	if _, newer := errors.AsType[*wire.UnknownError](err); newer {
		return &errCode{"503", []RefusedField{{Reason: "a newer version of pfl-forge has written what is to be read; ask again when all runners are updated"}}}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &errCode{"503", []RefusedField{{Reason: "there is more to read than a request has time for now; try again"}}}
	}
	return err
}

// Page asks a runner for a page of something large, as List does, and returns the document
// that answers the verb's request: a document.Diff for a document.DiffRequest, and so on.
func (ss *Submissions) Page(ctx context.Context, project forge.ProjectID, gateway, verb string, request any) (json.RawMessage, error) {
	return ss.look(ctx, project, gateway, verb, request)
}
