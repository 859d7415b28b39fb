package bus

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
	"github.com/pfl-forge/pfl-forge/document"
)

const (
	streamRefusals = "FORGE_REFUSALS"
	// refusalType is the type of events that tell why a submission was refused.
	refusalType = "io.pfl-forge.submission.refused.v1"
	maxRefusals = 8 << 20
)

// refusals declares the stream in which systems are told what was refused. It is none of
// the changes of intents: there is no intent.
func refusals() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        streamRefusals,
		Description: "submissions of other systems that were refused, as CloudEvents, with the reasons",
		Subjects:    []string{"forge.refusal.*.*"},
		MaxAge:      keepEvents,
		MaxBytes:    maxRefusals, // the oldest goes first
		Duplicates:  duplicates,
		DenyDelete:  true,
		DenyPurge:   true,
	}
}

// Refusal is the data of an event about a submission that was refused.
type Refusal struct {
	Project forge.ProjectID `json:"project"`
	Origin  document.Origin `json:"origin"` // as far as it can be read
	Errors  []RefusedField  `json:"errors"`
}

// refused tells a system why its submission was refused, once for each message.
func (b *Bus) refused(ctx context.Context, m jetstream.Msg, why Refusal) error {
	from, ok := systemOf(m.Subject())
	if !ok {
		return nil // people are told otherwise
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	why.Project = from.project
	why.Origin.System = cmp.Or(why.Origin.System, from.name)
	subject, err := refusalSubject(from.project, why.Origin.System)
	if err != nil {
		return err
	}
	id := fmt.Sprintf("%s/refused/%d", from.project, meta.Sequence.Stream)
	data, err := json.Marshal(cloudEvent[Refusal]{
		SpecVersion: cloudEventsVersion, ID: id, Source: "/pfl-forge/" + string(from.project), Type: refusalType,
		Subject: document.Cut(why.Origin.EventID), Time: time.Now().UTC(), ContentType: typeJSON, Data: why,
	})
	if err != nil {
		return err
	}
	told := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{}}
	told.Header.Set(headerContentType, typeCloudEvents)
	told.Header.Set(jetstream.MsgIDHeader, id)
	_, err = b.publish(ctx, told)
	return err
}

// systemOf returns who sent a submission, if a system did.
func systemOf(subject string) (sender, bool) {
	from, err := parseIntentSubject(subject)
	return from, err == nil && !from.person
}

// refusalOf says why what cannot be read was refused, and whose it is as far as it says.
func refusalOf(err error) Refusal {
	wrong, ok := errors.AsType[*SubmissionError](err)
	if !ok {
		return Refusal{Errors: []RefusedField{{Reason: document.Cut(err.Error())}}}
	}
	r := Refusal{Origin: document.Origin{System: document.Cut(wrong.origin.System), EventID: document.Cut(wrong.origin.EventID), Actor: document.Cut(wrong.origin.Actor)}}
	for _, f := range wrong.Fields {
		r.Errors = append(r.Errors, RefusedField{f.Field, document.Cut(f.Reason)})
	}
	return r
}

// rejected is what a submission's sender is told of a ruling; nil if it is no refusal.
func rejected(ev *forge.Event, r forge.Ruling) *Refusal {
	submit := forge.As[*forge.Submit](ev.Message)
	if r.Decision != forge.Refused || submit == nil || submit.Intent.Source != forge.SourceSystem {
		return nil
	}
	o := submit.Intent.Origin
	return &Refusal{Origin: document.Origin(o), Errors: []RefusedField{refusedField(r)}}
}
