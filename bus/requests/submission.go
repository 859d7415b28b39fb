package requests

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"mime"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/codec"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/submitted"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/slug"
	"github.com/pfl-forge/pfl-forge/messages"
)

// typesProtobuf lists the content types that mean protobuf.
var typesProtobuf = []string{"application/protobuf", "application/x-protobuf", "application/vnd.google.protobuf", "application/octet-stream"}

// notOneOf is the error for data in none of the formats. Most senders write
// JSON.
const notOneOf = "is neither a JSON object nor a protobuf Event"

// maxOrigin bounds the names in an origin, in bytes.
const maxOrigin = 500

// SubmissionError has everything that is wrong with a submission, field by
// field. It is final for the message.
type SubmissionError struct {
	// Fields are sorted by field. An empty field stands for the whole message.
	Fields []forge.FieldError

	// origin is the submission's, as far as it can be read.
	origin forge.Origin
}

func (e *SubmissionError) Error() string {
	var list []string
	for _, f := range e.Fields {
		list = append(list, strings.TrimPrefix(f.Error(), ": "))
	}
	return strings.Join(list, "; ")
}

// wrong returns the error for one mistake.
func wrong(field, reason string) *SubmissionError {
	return wrongs([]forge.FieldError{{Field: field, Reason: reason}})
}

// wrongs returns the error for several mistakes, which it sorts by field.
func wrongs(errs []forge.FieldError) *SubmissionError {
	slices.SortFunc(errs, func(a, b forge.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return &SubmissionError{Fields: errs}
}

// submission is the message of a system, together with the ways in which it may
// be identified.
type submission struct {
	// from is the sender as the subject names it. Unlike the content, the
	// server has checked that.
	from        subjects.Sender
	contentType string
	data        []byte
	// fallback identifies the message itself, for content without an id of any
	// kind.
	fallback string
}

// request is a submission that was read, but not checked.
type request struct {
	intent forge.Intent
	// comments are those that it tells of, in place of asking for the intent; nil if it asks.
	comments *forge.Comments
	// own is the id that the message gives itself, such as that of a
	// CloudEvent; empty if it has none.
	own string
	// signature is the author's, in what a runner stored for a system; others may not say one.
	signature string
	// account and ref name the system as a gateway does.
	account, ref string
}

// read returns the event that a submission stands for, or a *SubmissionError.
// The intent's id follows from its origin, so the same event of a system is the
// same intent in whatever format, and however often and late it comes.
func (s submission) read() (forge.Event, error) {
	r, err := s.parse()
	if wrong, ok := errors.AsType[*SubmissionError](err); ok {
		wrong.origin = r.intent.Origin
	}
	if err != nil {
		return forge.Event{}, err
	}
	errs := s.place(&r)
	if r.signature != "" && s.from.Named {
		errs = append(errs, forge.FieldError{Field: "signature", Reason: "belongs into the headers; leave it out"})
	}
	errs = append(errs, account(s.from, r.account, r.ref)...)
	in := r.intent
	e := in.Validate()
	if r.comments != nil {
		errs = append(errs, besides(in)...)
		e = r.comments.Validate()
	}
	if e != nil && len(errs) == 0 {
		errs = append(errs, *e)
	}
	if len(errs) > 0 {
		wrong := wrongs(errs)
		wrong.origin = in.Origin
		return forge.Event{}, wrong
	}
	if actor := in.Origin.Actor; actor != "" && r.comments == nil {
		in.Requesters = []forge.Identity{{Name: actor}} // the system says so, and nobody has proven it
	}
	return forge.Event{
		ID: "submit/" + string(in.ID), To: forge.Key{Project: in.Project, Intent: in.ID},
		Actor: in.Origin.System, Message: &forge.Submit{Intent: in, Comments: r.comments}, Signature: r.signature,
		Via: s.from.Via, Account: r.account, Ref: r.ref,
	}, nil
}

// besides returns an error for each field that says something of an intent beside comments: they
// are about one that is there, and change nothing of it.
func besides(in forge.Intent) (errs []forge.FieldError) {
	for _, e := range beyond(in, "", "ID", "Project", "Source", "Origin") {
		errs = append(errs, forge.FieldError{Field: e.Field, Reason: "changes nothing of an intent that comments are told of; leave it out"})
	}
	return errs
}

// parse reads the content in any of the formats: by the content type if there
// is one, otherwise by the look of the data.
func (s submission) parse() (request, error) {
	kind, _, err := mime.ParseMediaType(s.contentType)
	if s.contentType != "" && err != nil {
		return request{}, wrong("Content-Type", err.Error())
	}
	binary := slices.Contains(typesProtobuf, kind)
	if kind != "" && kind != wire.TypeJSON && kind != wire.TypeCloudEvents && !binary {
		return request{}, wrong("Content-Type", fmt.Sprintf("is %q; it can be %s, %s or %s, or be left out",
			kind, wire.TypeJSON, wire.TypeCloudEvents, typesProtobuf[0]))
	}
	if len(s.data) == 0 {
		return request{}, wrong("", "is empty; it is to be the intent, as a JSON object or a protobuf Event")
	}
	if binary || kind == "" && !codec.LooksLikeJSON(s.data) {
		ev, err := wire.Events.Unmarshal(s.data)
		if _, garbage := errors.AsType[*wire.GarbageError](err); garbage || err != nil && isText(s.data) {
			err = errors.New(notOneOf)
		}
		return readEvent(ev, err)
	}
	var errs []forge.FieldError
	o, err := jsonobject.Parse(s.data, "", &errs)
	if err != nil {
		return request{}, wrong("", err.Error())
	}
	var r request
	switch {
	case kind == wire.TypeCloudEvents || o.Has("specversion"):
		r.intent = submitted.CloudEvent(&o)
	case o.HasAny("submit", "to"): // an Event of the .proto files
		return readEvent(wire.Events.ParseJSON(s.data))
	default:
		r.plain(&o)
	}
	if len(errs) > 0 {
		return r, wrongs(errs)
	}
	return r, nil
}

// plain reads a JSON object of our own names: an intent, or comments on one.
func (r *request) plain(o *jsonobject.Object) {
	if r.comments = submitted.Comments(o); r.comments != nil {
		o.Only("id", "project", "origin", "comments")
	} else {
		r.intent = submitted.Intent(o, "id", "project", "origin")
	}
	o.Text("id", (*string)(&r.intent.ID))
	o.Text("project", (*string)(&r.intent.Project))
	submitted.Origin(o, &r.intent.Origin)
}

// isText reports whether data is text, so that an error about it as protobuf
// would not help its sender.
func isText(data []byte) bool {
	return utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

// readEvent returns the intent of an event that is a submission.
func readEvent(ev forge.Event, err error) (request, error) {
	if err != nil {
		return request{}, wrong("", err.Error())
	}
	if got := messages.Verb(ev.Message); got != "submit" {
		return request{}, wrong("", fmt.Sprintf("it was sent as %q, but holds %q", "submit", got))
	}
	submit := forge.As[*forge.Submit](ev.Message)
	in := submit.Intent
	errs := beyond(*submit, "submit.", "Intent", "Comments")
	if ev.Anchor != "" {
		errs = append(errs, forge.FieldError{Field: "anchor", Reason: "is for machines to say; leave it out"})
	}
	if ev.To.Intent != "" && in.ID != "" && ev.To.Intent != in.ID {
		errs = append(errs, forge.FieldError{Field: "to.intent", Reason: fmt.Sprintf("is %q, but it submits %q", ev.To.Intent, in.ID)})
	}
	if ev.To.Project != "" && in.Project != "" && ev.To.Project != in.Project {
		errs = append(errs, forge.FieldError{Field: "to.project", Reason: fmt.Sprintf("is %q, but it submits to %q", ev.To.Project, in.Project)})
	}
	if len(errs) > 0 {
		return request{}, wrongs(errs)
	}
	in.ID, in.Project = cmp.Or(in.ID, ev.To.Intent), cmp.Or(in.Project, ev.To.Project)
	return request{intent: in, comments: submit.Comments, own: ev.ID, signature: ev.Signature, account: ev.Account, ref: ev.Ref}, nil
}

// place fills in the intent's project, origin and id, and returns an error for
// each field that is not for its sender to decide. The project is that of the
// subject, and so is the system, if the subject names one: content cannot claim
// another.
func (s submission) place(r *request) (errs []forge.FieldError) {
	in := &r.intent
	note := func(field, format string, args ...any) {
		errs = append(errs, forge.FieldError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
	if in.Source != "" && in.Source != forge.SourceSystem {
		note("source", "is %q; what comes this way is from a system", in.Source)
	}
	in.Source = forge.SourceSystem
	errs = append(errs, beyond(undecided(*in, document.Systems), "")...)
	if in.Project != "" && in.Project != s.from.Project {
		note("project", "is %q, but it was sent to %q", in.Project, s.from.Project)
	}
	in.Project = s.from.Project
	origin := &in.Origin
	switch {
	case !s.from.Named || origin.System == s.from.Name:
	case origin.System == "":
		origin.System = s.from.Name
	default:
		note("origin.system", "is %q, but its sender may speak for %q only", origin.System, s.from.Name)
	}
	if origin.System == "" {
		note("origin.system", "is empty; say which system sends this")
	}
	if in.ID != "" && origin.EventID != "" && s.from.Via == "" { // a gateway gives each content an event of its own
		note("id", "follows from origin; leave one of them out")
	}
	origin.EventID = cmp.Or(origin.EventID, string(in.ID), r.own, s.fallback)
	for field, text := range map[string]string{"origin.actor": origin.Actor, "origin.event_id": origin.EventID, "origin.system": origin.System} {
		if reason := badName(text); reason != "" {
			note(field, "%s", reason)
		}
	}
	if in.ID == "" && len(errs) == 0 {
		in.ID = originID(in.Project, *origin)
	}
	return errs
}

// originID returns the id of an intent that an event of a system asks for: a
// readable beginning, and a hash of project, system and event. It must never
// change: a repeated event would become a second intent.
func originID(p forge.ProjectID, o forge.Origin) forge.IntentID {
	const readable, unique = 20, 16
	h := sha256.New()
	for _, part := range []string{string(p), o.System, o.EventID} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	sum := strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)))[:unique]
	name := slug.Make(o.EventID)
	if len(name) > readable {
		name = name[:readable]
	}
	if name = strings.Trim(name, "-"); name != "" {
		name += "-"
	}
	return forge.IntentID(name + sum)
}

// badName returns why a text cannot be a name in an origin; empty if it can.
func badName(s string) string {
	switch {
	case len(s) > maxOrigin:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), maxOrigin)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "holds a control character"
	}
	return ""
}

// undecided returns the intent with every field that its sender may set cleared.
// Everything else is decided here, also what the vocabulary gains later.
func undecided(in forge.Intent, by document.Setter) forge.Intent {
	for _, f := range document.FieldsBy(by) {
		reflect.ValueOf(f.Of(&in)).Elem().SetZero()
	}
	in.ID, in.Project, in.Origin = "", "", forge.Origin{}
	in.Checks = nil // they come with the criteria
	if by == document.Persons {
		in.Status, in.CreatedAt = "", time.Time{} // as they are at the beginning
	}
	return in
}

// wordEnd matches the places at which a Go name gets an underscore.
var wordEnd = pattern.New(`([a-z])([A-Z])`)

// beyond returns an error for each field of a struct that is set and is not
// among the allowed ones. path is put before the names.
func beyond(v any, path string, allowed ...string) (errs []forge.FieldError) {
	of := reflect.ValueOf(v)
	for _, f := range reflect.VisibleFields(of.Type()) {
		if !f.Anonymous && !slices.Contains(allowed, f.Name) && !of.FieldByIndex(f.Index).IsZero() {
			field := path + strings.ToLower(wordEnd.ReplaceAllString(f.Name, "${1}_$2"))
			errs = append(errs, forge.FieldError{Field: field, Reason: "is not for a sender to say; leave it out"})
		}
	}
	return errs
}
