package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/quota"
)

const (
	// refusalType is the type of events that tell why a submission was refused.
	refusalType = "io.pfl-forge.submission.refused.v1"
)

// Refusal is the data of an event about a submission that was refused.
type Refusal struct {
	Project forge.ProjectID `json:"project"`
	// Origin is the submission's, as far as it can be read: the system finds
	// its own event by it.
	Origin document.Origin `json:"origin"`
	// Errors has every mistake, or the reason of the runner.
	Errors []RefusedField `json:"errors"`
	// RetryAfterSeconds is when the same submission may be accepted; 0: it has to be another one.
	RetryAfterSeconds int `json:"retry_after_seconds,omitempty"`
}

// PublishRefusal stores the event that tells a system why its submission m was
// refused. It may be called again for the same message: the event is stored
// once. For people's messages it does nothing; they are told by a ruling.
func (ss *Submissions) PublishRefusal(ctx context.Context, m jetstream.Msg, why Refusal) error {
	from, ok := systemOf(m.Subject())
	if !ok {
		return nil // people are told otherwise
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	why.Project = from.Project
	why.Origin.System = cmp.Or(why.Origin.System, from.Name)
	subject, err := subjects.Refusal(from.Project, why.Origin.System)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("%s/refused/%d", from.Project, meta.Sequence.Stream)
	data, err := json.Marshal(changes.CloudEvent[Refusal]{
		SpecVersion: changes.CloudEventsVersion, ID: id, Source: "/pfl-forge/" + string(from.Project), Type: refusalType,
		Subject: document.Cut(why.Origin.EventID), Time: time.Now().UTC(), ContentType: wire.TypeJSON, Data: why,
	})
	if err != nil {
		return err
	}
	told := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	told.Header.Set(wire.HeaderContentType, wire.TypeCloudEvents)
	told.Header.Set(jetstream.MsgIDHeader, id)
	_, err = ss.conn.Publish(ctx, told)
	return err
}

// systemOf returns the system that a submission's subject names; false for a
// person's.
func systemOf(subject string) (subjects.Sender, bool) {
	from, err := subjects.ParseIntent(subject)
	return from, err == nil && !from.Person
}

// RefusalOf returns the refusal of a submission that cannot be read, with its
// origin as far as that can be. err is the error of ReadIntent.
func RefusalOf(err error) Refusal {
	wrong, ok := errors.AsType[*SubmissionError](err)
	if !ok {
		return Refusal{Errors: []RefusedField{{Reason: document.Cut(err.Error())}}}
	}
	o := wrong.origin
	r := Refusal{Origin: document.Origin{System: document.Cut(o.System), EventID: document.Cut(o.EventID), Actor: document.Cut(o.Actor)}}
	for _, f := range wrong.Fields {
		r.Errors = append(r.Errors, RefusedField{f.Field, document.Cut(f.Reason)})
	}
	return r
}

// Rejected returns the refusal for a submission's sender; nil if the ruling is none.
func Rejected(ev *forge.Event, r forge.Ruling) *Refusal {
	submit := forge.As[*forge.Submit](ev.Message)
	if r.Decision != forge.Refused || submit == nil || submit.Intent.Source != forge.SourceSystem {
		return nil
	}
	o := submit.Intent.Origin
	told := &Refusal{Origin: document.Origin(o), Errors: []RefusedField{refusedField(r)}}
	if quota.Exceeded(r) {
		told.RetryAfterSeconds = int(quota.TryAgainAfter.Seconds())
	}
	return told
}
