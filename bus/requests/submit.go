package requests

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/signed"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/quota"
)

// rulingWait is how long a submission waits for a runner's decision.
const rulingWait = 5 * time.Second

// Accepted answers a submission.
type Accepted struct {
	Project forge.ProjectID `json:"project"`
	Intent  forge.IntentID  `json:"intent"`
	// Result is new, known (the same event was submitted before), or accepted (it is
	// stored, and no runner has decided yet).
	Result string `json:"result"`
}

// submit stores an intent and answers with the runner's decision, an Accepted;
// if none comes in time the intent is stored all the same.
func (e *endpoints) submit(ctx context.Context, from subjects.Sender, r micro.Request) (any, error) {
	header := r.Headers()
	ev, err := submission{
		from: from, contentType: header.Get(wire.HeaderContentType), data: r.Data(),
		fallback: cmp.Or(header.Get(jetstream.MsgIDHeader), nuid.Next()),
	}.read()
	if wrong, ok := errors.AsType[*SubmissionError](err); ok {
		refused := &errCode{code: "400"}
		for _, f := range wrong.Fields {
			refused.fields = append(refused.fields, RefusedField{f.Field, f.Reason})
		}
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	if ev.Signature, err = e.proven(ctx, from, r); err != nil {
		return nil, err
	}
	subject, err := subjects.Submission(from.Project)
	if err != nil {
		return nil, err
	}
	id := ev.To.Intent
	m, err := e.submissions.again(ev, subject)
	if err != nil {
		return nil, bad("", "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, rulingWait)
	defer cancel()
	ruling, err := e.submissions.decided(ctx, m)
	result := Accepted{Project: from.Project, Intent: id, Result: "new"}
	switch {
	case errors.Is(err, ErrNoRuling):
		result.Result = "accepted"
	case err != nil:
		return nil, err
	case quota.Exceeded(ruling):
		return nil, &errCode{"429", []RefusedField{refusedField(ruling)}}
	case ruling.Decision == forge.Refused:
		return nil, &errCode{"409", []RefusedField{refusedField(ruling)}}
	case ruling.Decision == forge.Ignored, ruling.Reason != "":
		result.Result = "known"
	}
	return result, nil
}

// proven returns the signature of a submission's author; empty where accounts have no
// keys. A submission without proof is refused, and shown among the dead letters.
func (e *endpoints) proven(ctx context.Context, from subjects.Sender, r micro.Request) (string, error) {
	if e.cfg.Authors == nil {
		return "", nil
	}
	header := nats.Header(r.Headers())
	p, err := e.cfg.Authors.Check(conn.Signable(r.Subject(), header, r.Data()), header[signed.Header], time.Now(), signed.AuthorOf(from))
	if err == nil {
		return p.String(), nil
	}
	id, m := conn.Unstored("requests", r.Subject(), r.Data())
	if err := e.conn.BuryAs(ctx, id, "", m, err.Error()); err != nil {
		return "", err
	}
	return "", &errCode{"403", []RefusedField{{Reason: err.Error()}}}
}

// refusedField returns the reason of a ruling, without the field's name in
// front of it.
func refusedField(r forge.Ruling) RefusedField {
	return RefusedField{r.Field, strings.TrimPrefix(r.Reason, r.Field+": ")}
}

// again returns a submission as a message that is read to the same event: a
// request is stored like a submission to the stream, so that runners have one
// way of reading both.
func (ss *Submissions) again(ev forge.Event, subject string) (*nats.Msg, error) {
	submit := forge.As[*forge.Submit](ev.Message)
	in := submit.Intent
	if in.ID == originID(in.Project, in.Origin) {
		in.ID, ev.To.Intent = "", "" // it follows from the origin
	} else {
		in.Origin.EventID = "" // it follows from the id
	}
	ev.Message = &forge.Submit{Intent: in, Comments: submit.Comments}
	data, err := wire.Events.Marshal(&ev)
	if err != nil {
		return nil, err
	}
	m, err := ss.conn.Message(subject, data)
	if err == nil {
		m.Header.Set(jetstream.MsgIDHeader, "api/"+nuid.Next())
	}
	return m, err
}
