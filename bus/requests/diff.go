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

// diffsAtOnce bounds the changes that are read at the same time. Each is read as a whole for every page of it, and takes up to about
// 30 MB of the memory of the runner meanwhile.
const diffsAtOnce = 4

// diff answers with a document.Diff: a page of the change of an attempt. Everybody who may see the intent may see it. It answers 400
// for a request that names a field wrong, 404 for an attempt that is not there or whose change is not stored, 409 for a stored change
// that is not the journal's, and 429 while too many are read.
func (e *endpoints) diff(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	var req document.DiffRequest
	err := readRequest(r.Data(), func(o *jsonObject) {
		o.text("intent", (*string)(&req.Intent))
		o.text("task", (*string)(&req.Task))
		o.text("step", (*string)(&req.Step))
		o.whole("attempt", &req.Attempt)
		o.read("stat", &req.Stat, "true or false")
		o.text("after", &req.After)
		o.only("intent", "task", "step", "attempt", "stat", "after")
		*o.errs = append(*o.errs, req.Check()...)
	})
	if err != nil {
		return nil, err
	}
	select {
	case e.diffs <- struct{}{}:
		defer func() { <-e.diffs }()
	case <-ctx.Done():
		return nil, &errCode{"429", []RefusedField{{Reason: "too many changes are read at once; try again"}}}
	}
	d, err := e.cfg.Diff(ctx, from.Project, req)
	if errors.Is(err, conn.ErrNotFound) {
		return nil, &errCode{"404", []RefusedField{{"intent", fmt.Sprintf("there is no intent %q in project %q", req.Intent, from.Project)}}}
	}
	if refused, ok := errors.AsType[*RequestError](err); ok {
		return nil, &errCode{strconv.Itoa(refused.Code), refused.Fields}
	}
	if err != nil {
		return nil, err
	}
	d.Page(req)
	return d, nil
}

// Diff asks a runner for a page of the change of an attempt, as List does, and returns a document.Diff.
func (ss *Submissions) Diff(ctx context.Context, project forge.ProjectID, gateway string, r document.DiffRequest) (json.RawMessage, error) {
	return ss.look(ctx, project, gateway, subjects.VerbDiff, r)
}
