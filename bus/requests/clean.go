package requests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

const (
	// MaxClean is how many intents a request to clean names at most, and how many an
	// answer tells of.
	MaxClean = 100
	// cleanLimit is how long an implementer takes for a request, cleanWait how long its
	// sender waits.
	cleanLimit = 45 * time.Second
	cleanWait  = time.Minute
	// cleansAtOnce is how many requests a replica has taken: it does one after the other.
	cleansAtOnce = 4
	// cleanService names these requests among a server's micro services. Implementers themselves
	// are announced in package presence.
	cleanService = "pfl-forge-clean"
)

// ErrNoImplementer says that no implementer answers.
var ErrNoImplementer = errors.New("no implementer answers: start forge-implementer with this server and project, then clean again")

// CleanRequest asks for the leftovers of intents to be removed: commits of
// their attempts at the origin, agents' conversations, and whole transcripts.
// The zero value asks for all of a project.
type CleanRequest struct {
	// Intents are the ones to clean, at most MaxClean. None means every intent
	// that is over and left something; then Before and After apply.
	Intents []forge.IntentID
	// Before leaves out intents that ended after that time. Zero leaves out
	// none.
	Before time.Time
	// After leaves out intents up to this id, to go on after Cleaned.Next.
	After forge.IntentID
	// DryRun counts the leftovers and removes nothing.
	DryRun bool
}

// cleanRequest is the request as JSON. It has the fields of CleanRequest, in
// the same order.
type cleanRequest struct {
	Intents []forge.IntentID `json:"intents,omitempty"`
	Before  time.Time        `json:"before,omitzero"`
	After   forge.IntentID   `json:"after,omitempty"`
	DryRun  bool             `json:"dry_run,omitempty"`
}

// Cleaned answers a request to clean, with at most MaxClean intents.
type Cleaned struct {
	// Intents are those that left something, in the order of their ids.
	Intents []CleanedIntent `json:"intents"`
	// Kept are those whose leftovers are still there, or a part of them.
	Kept []KeptIntent `json:"kept,omitempty"`
	// Next is the id to ask for with after to clean more; empty if there is no more.
	Next forge.IntentID `json:"next,omitempty"`
}

// CleanedIntent counts the leftovers of an intent.
type CleanedIntent struct {
	// ID, Status and EndedAt are those of the intent, which is over.
	ID      forge.IntentID `json:"id"`
	Status  forge.Status   `json:"status"`
	EndedAt time.Time      `json:"ended_at"`
	// Refs counts hidden refs at the origin, and Sessions conversations of
	// agents.
	Refs     int `json:"refs"`
	Sessions int `json:"sessions"`
	// Transcripts are whole ones, of attempts that have ended.
	Transcripts int `json:"transcripts"`
	// Bytes is the size of sessions and transcripts; that of commits is not
	// known.
	Bytes int64 `json:"bytes"`
	// Removed is false in answers to a DryRun: the leftovers would be removed.
	Removed bool `json:"removed"`
}

// KeptIntent is an intent that was not cleaned.
type KeptIntent struct {
	ID forge.IntentID `json:"id"`
	// Reason is a phrase to follow the id: "is not over".
	Reason string `json:"reason"`
}

// Leftovers asks implementers to remove what finished intents left, and serves such requests.
type Leftovers struct {
	conn *conn.Conn
}

// NewLeftovers returns the Leftovers of a connection.
func NewLeftovers(c *conn.Conn) *Leftovers {
	return &Leftovers{conn: c}
}

// Clean asks an implementer of the project to clean, in the name of a person,
// and waits up to a minute for the answer. Errors: ErrNoImplementer,
// ErrNotAllowed, and what the implementer says. It can be called again whatever
// became of the call before.
func (lo *Leftovers) Clean(ctx context.Context, project forge.ProjectID, person string, req CleanRequest) (Cleaned, error) {
	answer, err := lo.clean(ctx, project, person, req)
	if err != nil {
		return answer, fmt.Errorf("clean: %w", err)
	}
	return answer, nil
}

// clean is Clean without its name in errors.
func (lo *Leftovers) clean(ctx context.Context, project forge.ProjectID, person string, req CleanRequest) (answer Cleaned, err error) {
	subject, err := subjects.Asked(project, person, subjects.VerbClean)
	if err != nil {
		return answer, err
	}
	data, err := json.Marshal(cleanRequest(req))
	if err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, cleanWait)
	defer cancel()
	m, err := ask(ctx, lo.conn, subject, data)
	if errors.Is(err, nats.ErrNoResponders) {
		return answer, ErrNoImplementer
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return answer, errors.New("no answer in time; what is removed stays removed: ask again")
	}
	if err != nil {
		return answer, err
	}
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		return answer, errors.New(conn.Said(m))
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return answer, err
	}
	return answer, answer.check()
}

// check refuses an answer with malformed ids or statuses: they are going to be
// printed on a terminal, and an answer may come from any account that may
// answer.
func (c *Cleaned) check() error {
	var errs []error
	id := func(id forge.IntentID) {
		_, err := forge.ParseIntentID(string(id))
		errs = append(errs, err)
	}
	for i := range c.Intents {
		id(c.Intents[i].ID)
		if s := c.Intents[i].Status; !s.Ended() {
			errs = append(errs, fmt.Errorf("status %q", s))
		}
	}
	for i := range c.Kept {
		id(c.Kept[i].ID)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the answer is malformed: %w", err)
	}
	return nil
}

// ask makes a request of a micro service. Errors: nats.ErrNoResponders, and
// ErrNotAllowed, which the server tells beside the request.
func ask(ctx context.Context, c *conn.Conn, subject string, data []byte) (m *nats.Msg, err error) {
	err = c.Permitted(ctx, subject, func(ctx context.Context) error {
		m, err = c.NC.RequestWithContext(ctx, subject, data)
		return err
	})
	return m, err
}

// Cleaner removes the leftovers of intents, for a person. An error is told to that person: that
// of a *forge.FieldError as a mistake in the request.
type Cleaner func(ctx context.Context, project forge.ProjectID, person string, req CleanRequest) (Cleaned, error)

// Serve answers people's requests to clean until ctx ends, which ends what is under
// way too. Several processes share the requests.
func (lo *Leftovers) Serve(ctx context.Context, clean Cleaner) error {
	e := &endpoints{conn: lo.conn, slots: make(chan struct{}, cleansAtOnce), limit: cleanLimit}
	return e.serve(ctx, cleanService, "remove what finished intents left", e.endpoint(
		subjects.VerbClean, subjects.APIClean, "intents, before, after, dry_run, all optional; answers intents, kept, next", e.cleaning(ctx, clean),
	))
}

// cleaning answers requests to clean. serving ends those under way: what they
// removed stays removed, and the person is told to ask again.
func (e *endpoints) cleaning(serving context.Context, clean Cleaner) answering {
	return func(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
		req, err := readCleanRequest(r.Data())
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(serving, func() { cancel(errors.New("this implementer is being stopped: ask again")) })()
		answer, err := clean(ctx, from.Project, from.Name, req)
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
			err = cause
		}
		if field, ok := errors.AsType[*forge.FieldError](err); ok {
			return nil, bad(field.Field, "%s", field.Reason)
		}
		if err != nil {
			e.conn.Log.WarnContext(ctx, "cannot clean", "project", from.Project, "person", from.Name, "error", err)
			return nil, &errCode{"500", []RefusedField{{Reason: wire.OneLine(err.Error())}}}
		}
		answer.bound()
		return answer, nil
	}
}

// bound keeps an answer within the size of a message.
func (c *Cleaned) bound() {
	c.Intents = c.Intents[:min(len(c.Intents), MaxClean)]
	c.Kept = c.Kept[:min(len(c.Kept), MaxClean)]
	for i := range c.Kept {
		c.Kept[i].Reason = wire.OneLine(c.Kept[i].Reason)
	}
}

// readCleanRequest reads a request's JSON. The error is an *errCode with every
// mistake.
func readCleanRequest(data []byte) (CleanRequest, error) {
	var req CleanRequest
	var ids []string
	var before, after string
	err := readRequest(data, func(o *jsonobject.Object) {
		o.List("intents", &ids)
		o.Text("before", &before)
		o.Text("after", &after)
		o.Read("dry_run", &req.DryRun, "true or false")
		o.Only("intents", "before", "after", "dry_run")
		if len(ids) > MaxClean {
			o.AddError("intents", fmt.Sprintf("has %d; at most %d are allowed", len(ids), MaxClean))
		}
		for i, id := range ids {
			parsed, err := forge.ParseIntentID(id)
			if err != nil {
				o.AddError(fmt.Sprintf("intents[%d]", i), err.Error())
			}
			req.Intents = append(req.Intents, parsed)
		}
		var err error
		if before != "" {
			if req.Before, err = time.Parse(time.RFC3339Nano, before); err != nil {
				o.AddError("before", "is no time such as 2026-11-20T10:00:00Z")
			}
		}
		if after != "" {
			if req.After, err = forge.ParseIntentID(after); err != nil {
				o.AddError("after", err.Error())
			}
		}
	})
	return req, err
}
