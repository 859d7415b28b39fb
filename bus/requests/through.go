package requests

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/submitted"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/quota"
)

// This file is a gateway's side: what people and systems ask it for, it asks runners for,
// always with its own name beside theirs.

// Caller is a person or system that asks a gateway for something. The gateway has made sure
// who that is.
type Caller struct {
	// Name is that of the person or system, and Person says which it is.
	Name   string
	Person bool
	// Gateway is the account of the gateway; empty for a person on their own
	// machine, who asks in their own name alone. Account says who the caller is
	// to it, and Ref where the caller asked; both are empty without one.
	Gateway, Account, Ref string
	// Later says that what is submitted is stored also while no runner is up, to be decided later.
	Later bool

	// keyed is the field with the caller's key that the id of the intent
	// follows from that was read; empty if there is none.
	keyed string
}

// RequestError says why a request was refused.
type RequestError struct {
	// Code is one of HTTP: 400, 404, 409, 429 or 500.
	Code   int
	Fields []RefusedField
	// RetryAfter is when the same request may be accepted; 0 if that is not known.
	RetryAfter time.Duration
}

func (e *RequestError) Error() string {
	if len(e.Fields) == 0 {
		return http.StatusText(e.Code)
	}
	return cmp.Or(e.Fields[0].Field, "request") + ": " + e.Fields[0].Reason
}

// mistakes returns the error for mistakes in a request; nil if there are none.
func mistakes(errs []forge.FieldError) error {
	if len(errs) == 0 {
		return nil
	}
	e := &RequestError{Code: http.StatusBadRequest}
	for _, f := range errs {
		e.Fields = append(e.Fields, RefusedField{f.Field, f.Reason})
	}
	return e
}

// ListRequest asks for a page of a project's intents.
type ListRequest struct {
	// Filter chooses them, and Agent, if not empty, those that this agent works
	// on or has worked on.
	Filter document.Filter
	Agent  string
	// After is the id to go on after, Limit how many are wanted; zero values are defaults.
	After string
	Limit int
}

// List asks a runner for intents, as the system of a gateway, and returns the answer as
// JSON, a document.Listed. Errors: ErrRunnerDown, *RequestError.
func (ss *Submissions) List(ctx context.Context, project forge.ProjectID, gateway string, r ListRequest) (json.RawMessage, error) {
	// The document's filter has no names in JSON: these are those of the runner's side.
	type request struct {
		Status    []string   `json:"status,omitempty"`
		Waiting   []string   `json:"waiting,omitempty"`
		Type      []string   `json:"type,omitempty"`
		Labels    []string   `json:"labels,omitempty"`
		Requester string     `json:"requester,omitempty"`
		Priority  *int       `json:"priority,omitempty"`
		Agent     string     `json:"agent,omitempty"`
		Since     *time.Time `json:"since,omitempty"`
		After     string     `json:"after,omitempty"`
		Limit     int        `json:"limit,omitempty"`
	}
	f := r.Filter
	ask := request{
		Status: f.Status, Waiting: f.Waiting, Type: f.Type, Labels: f.Labels, Requester: f.Requester, Priority: f.Priority, Agent: r.Agent,
		After: r.After, Limit: r.Limit,
	}
	if !f.Since.IsZero() {
		ask.Since = &f.Since
	}
	return ss.look(ctx, project, gateway, subjects.VerbList, ask)
}

// Show asks a runner for a page of an intent, as List does, and returns a document.Detail.
func (ss *Submissions) Show(ctx context.Context, key forge.Key, gateway string, p document.Page) (json.RawMessage, error) {
	// Runners that know no pages take what they know: the fields are left out
	// where they say nothing.
	type request struct {
		Intent forge.IntentID `json:"intent"`
		Part   string         `json:"part,omitempty"`
		After  int            `json:"after,omitempty"`
	}
	return ss.look(ctx, key.Project, gateway, subjects.VerbShow, request{key.Intent, p.Part, p.After})
}

// look asks a runner as the system of a gateway.
func (ss *Submissions) look(ctx context.Context, project forge.ProjectID, gateway, verb string, request any) (json.RawMessage, error) {
	subject, err := subjects.AskedFrom(project, gateway, verb)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*conn.RequestTimeout)
	defer cancel()
	m, err := ask(ctx, ss.conn, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, ErrRunnerDown
	case err != nil:
		return nil, err
	}
	code := m.Header.Get(micro.ErrorCodeHeader)
	if code == "" {
		return m.Data, nil
	}
	refused := &RequestError{}
	if refused.Code, err = strconv.Atoi(code); err != nil {
		return nil, fmt.Errorf("a runner answers with the code %q", code)
	}
	var told Refused
	if err := json.Unmarshal(m.Data, &told); err != nil {
		return nil, err
	}
	refused.Fields = told.Errors
	return nil, refused
}

// ReadIntentFor reads the intent that a caller submits through a gateway, as JSON. Its
// id follows from key, the caller's own name of the request, and where there is none it
// is another one each time. The origin's event has a hash of the content: the same key
// is the same intent, and with other content it is refused. A CloudEvent has its id as
// the key, with its source unless that is the caller. The error is a *RequestError.
func (ss *Submissions) ReadIntentFor(project forge.ProjectID, c *Caller, key string, data []byte) (forge.Intent, error) {
	var errs []forge.FieldError
	o, err := jsonobject.Parse(data, "", &errs)
	if err != nil {
		return forge.Intent{}, mistakes([]forge.FieldError{{Reason: err.Error()}})
	}
	var in forge.Intent
	if o.Has("specversion") {
		in, key = readCloudEvent(&o, project, c, key)
	} else {
		in = submitted.Intent(&o, "id")
		o.Text("id", (*string)(&in.ID))
		if c.keyed = ""; key != "" {
			c.keyed = "Idempotency-Key"
		}
		if key != "" && in.ID != "" {
			o.AddError("id", "follows from Idempotency-Key; leave one of them out")
		}
	}
	source := forge.SourceSystem
	if c.Person {
		source = forge.SourceHuman
	}
	if in.Source != "" && in.Source != source {
		o.AddError("source", fmt.Sprintf("is %q; what you ask for is of source %s", in.Source, source))
	}
	in.Source = "" // the same with and without it
	// The hash is of what the sender said, before anything follows from who that is.
	sum, err := contentSum(in)
	if err != nil {
		return forge.Intent{}, cmp.Or(mistakes(errs), err)
	}
	// People's keys are apart from each other's, and from those of systems, so that two who
	// choose the same key ask for two intents. Two who give the same id ask for one: it belongs to
	// whoever comes first.
	key = cmp.Or(key, string(in.ID), nuid.Next())
	in.Project, in.Source = project, source
	in.Origin.System, in.Origin.EventID = c.Name, key+"#"+sum
	holder := c.Name
	if c.Person {
		in.Origin.System, in.Origin.Actor = c.Gateway, c.Name
		holder = c.Gateway + "/by/" + c.Name
	}
	if in.ID == "" {
		in.ID = originID(project, forge.Origin{System: holder, EventID: key})
	}
	for field, text := range map[string]string{cmp.Or(c.keyed, "id"): in.Origin.EventID, "name": c.Name, "actor": in.Origin.Actor} {
		if reason := badName(text); reason != "" {
			errs = append(errs, forge.FieldError{Field: field, Reason: reason})
		}
	}
	return in, mistakes(append(errs, faults(in, errs)...))
}

// readCloudEvent reads the CloudEvent by which a caller submits, and returns
// its key. Of its origin the intent keeps the actor alone, a claim of a system.
func readCloudEvent(o *jsonobject.Object, project forge.ProjectID, c *Caller, header string) (in forge.Intent, key string) {
	in = submitted.CloudEvent(o)
	from := in.Origin
	if header != "" {
		o.AddError("Idempotency-Key", "follows from id and source of a CloudEvent; leave it out")
	}
	if in.Project != "" && in.Project != project {
		o.AddError("data.project", fmt.Sprintf("is %q, but it was sent to %q", in.Project, project))
	}
	if c.Person && from.Actor != "" && from.Actor != c.Name {
		o.AddError("data.actor", fmt.Sprintf("is %q, but %q asks", from.Actor, c.Name))
	}
	in.Project, in.Origin = "", forge.Origin{Actor: from.Actor} // the same with and without it
	c.keyed = "id"
	if from.System == c.Name {
		return in, from.EventID
	}
	if strings.Contains(from.System, " ") { // so that the key is that of no other event
		o.AddError("source", "is no URI reference: it has a space")
	}
	return in, from.EventID + " " + from.System
}

// faults returns the mistakes of an intent in other fields than those that are
// known to be wrong, so that they are told together. Validation ends with the
// first, so title and body are put right for it.
func faults(in forge.Intent, known []forge.FieldError) (more []forge.FieldError) {
	for range 3 {
		e := in.Validate()
		if e == nil {
			break
		}
		if !slices.ContainsFunc(known, func(k forge.FieldError) bool { return k.Field == e.Field }) {
			more = append(more, *e)
		}
		switch e.Field {
		case "title":
			in.Title = "t"
		case "body":
			in.Body = "b"
		default:
			return more
		}
	}
	return more
}

// contentSum returns a hash of what a sender said of an intent.
func contentSum(in forge.Intent) (string, error) {
	data, err := wire.Events.Marshal(&forge.Event{ID: "content", To: forge.Key{Project: "any"}, Message: &forge.Submit{Intent: in}})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), err
}

// SubmitFor submits an intent of ReadIntentFor for its caller, and waits for the decision.
// Errors: ErrRunnerDown before anything is stored, *RequestError; any other one means that
// it may be stored or not, and can be sent again.
func (ss *Submissions) SubmitFor(ctx context.Context, c *Caller, in forge.Intent) (Accepted, error) {
	key := forge.Key{Project: in.Project, Intent: in.ID}
	ruled := ss.ruled(ctx, key, c)
	later := c.Later && errors.Is(ruled, ErrRunnerDown)
	if ruled != nil && !later && !isMissing(ruled) {
		return Accepted{}, ruled
	}
	m, err := ss.submissionFor(c, &forge.Submit{Intent: in})
	if err != nil {
		return Accepted{}, err
	}
	if later {
		_, err := ss.store(ctx, m)
		return Accepted{Project: in.Project, Intent: in.ID, Result: "accepted"}, err
	}
	done, err := ss.accepted(ctx, m, key)
	// Where the id follows from the caller's key, its refusal is about that
	// key: of the id they know nothing.
	if e, ok := errors.AsType[*RequestError](err); ok && e.Code == http.StatusConflict && c.keyed != "" {
		for i := range e.Fields {
			if e.Fields[i].Field == "id" {
				e.Fields[i] = RefusedField{c.keyed, "was used for another intent, or for this one with other content; use a new one"}
			}
		}
	}
	return done, err
}

// TellFor tells of comments on an intent that is there, in the name of a system that its caller
// is, and waits for the decision. The errors are those of SubmitFor.
func (ss *Submissions) TellFor(ctx context.Context, c *Caller, key forge.Key, comments *forge.Comments) (Accepted, error) {
	if err := ss.ruled(ctx, key, c); err != nil {
		return Accepted{}, err
	}
	in := forge.Intent{ID: key.Intent, Project: key.Project, Source: forge.SourceSystem, Origin: forge.Origin{System: c.Name, EventID: comments.Ref}}
	m, err := ss.submissionFor(c, &forge.Submit{Intent: in, Comments: comments})
	if err != nil {
		return Accepted{}, err
	}
	return ss.accepted(ctx, m, key)
}

// submissionFor returns the message by which a gateway submits for a caller.
func (ss *Submissions) submissionFor(c *Caller, submit *forge.Submit) (*nats.Msg, error) {
	in := &submit.Intent
	ev := forge.Event{
		ID: "submit/" + string(in.ID), To: forge.Key{Project: in.Project, Intent: in.ID}, Account: c.Account, Ref: c.Ref, Message: submit,
	}
	if c.Person {
		ev.Actor, ev.Via = c.Name, c.Gateway
		m, err := ss.intentMessage(&ev)
		if err == nil {
			m.Header.Set(jetstream.MsgIDHeader, "gateway/"+nuid.Next()) // the origin says whether it is the same
		}
		return m, err
	}
	subject, err := subjects.SubmissionVia(in.Project, c.Name, c.Gateway)
	if err != nil {
		return nil, err
	}
	data, err := wire.Events.Marshal(&ev)
	if err != nil {
		return nil, err
	}
	m, err := ss.conn.Message(subject, data)
	if err == nil {
		m.Header.Set(jetstream.MsgIDHeader, "gateway/"+nuid.Next())
	}
	return m, err
}

// AskFor asks for a person's act about an intent, and waits for the decision, with the
// errors of SubmitFor. id is the act's: one that was decided is known.
func (ss *Submissions) AskFor(ctx context.Context, c *Caller, key forge.Key, id string, act forge.Message) (Accepted, error) {
	if err := ss.ruled(ctx, key, c); err != nil {
		return Accepted{}, err
	}
	m, err := ss.intentMessage(&forge.Event{
		ID: c.Name + "/" + cmp.Or(id, nuid.Next()), To: key, Actor: c.Name, Via: c.Gateway, Account: c.Account, Ref: c.Ref, Message: act,
	})
	if err != nil {
		return Accepted{}, err
	}
	m.Header.Set(jetstream.MsgIDHeader, "gateway/"+nuid.Next()) // the rules know an act by its own id
	return ss.accepted(ctx, m, key)
}

// ruled returns an error if no runner answers, so that nothing is stored that waits for a
// decision for long; and the *RequestError of a missing intent.
func (ss *Submissions) ruled(ctx context.Context, key forge.Key, c *Caller) error {
	_, err := ss.Show(ctx, key, cmp.Or(c.Gateway, "console"), document.Page{})
	return err
}

// isMissing reports whether an error only says that there is no such intent.
func isMissing(err error) bool {
	e, ok := errors.AsType[*RequestError](err)
	return ok && e.Code == http.StatusNotFound
}

// accepted stores a message and returns what a runner decides on it.
func (ss *Submissions) accepted(ctx context.Context, m *nats.Msg, key forge.Key) (Accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, rulingWait)
	defer cancel()
	result := Accepted{Project: key.Project, Intent: key.Intent, Result: "new"}
	ruling, err := ss.decided(ctx, m)
	switch {
	case errors.Is(err, ErrNoRuling):
		result.Result = "accepted"
	case err != nil:
		return result, err
	case quota.Exceeded(ruling):
		return result, &RequestError{http.StatusTooManyRequests, []RefusedField{refusedField(ruling)}, quota.TryAgainAfter}
	case ruling.Decision == forge.Refused:
		return result, &RequestError{Code: http.StatusConflict, Fields: []RefusedField{refusedField(ruling)}}
	case ruling.Decision == forge.Ignored, ruling.Reason != "":
		result.Result = "known"
	}
	return result, nil
}
