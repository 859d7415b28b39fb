// Package submitted reads what a system asks for as JSON: the fields of an
// intent that it may set, where they come from, and the CloudEvent around them.
// It is the same for what comes by NATS, by HTTP and through hooks.
package submitted

import (
	"encoding/json"
	"fmt"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
	"github.com/pfl-forge/pfl-forge/document"
)

// Type is the type of events that ask for an intent. Its version changes when a field's meaning
// does; a field that is added changes nothing.
const Type = "io.pfl-forge.intent.submit.v1"

// Intent reads the fields of an intent that a system may set: those of the table in package
// document, so that a field added there can be submitted. Further fields are the caller's. A field
// that is neither is noted as unknown, as is one of another type, with its path; the caller looks
// at the notes before it uses the intent.
func Intent(o *jsonobject.Object, further ...string) forge.Intent {
	var in forge.Intent
	var known []string
	for _, f := range document.FieldsBy(document.Systems) {
		if f.Name == Criteria {
			readCriteria(o, &in)
		} else {
			o.Read(f.Name, f.Of(&in), f.Kind())
		}
		known = append(known, f.Name)
	}
	o.Only(append(known, further...)...)
	return in
}

// Criteria is the field of an intent that has texts and checks.
const Criteria = "criteria"

// readCriteria reads the criteria of a system's submission: texts, and checks of the
// project by their names. It names no commands: what runs here is said by the project
// or by its people. What a protobuf event says of checks is refused by
// forge.Intent.Validate in the same words.
func readCriteria(o *jsonobject.Object, in *forge.Intent) {
	var entries []json.RawMessage
	o.Read(Criteria, &entries, "a list")
	var list []document.Criterion
	for i, entry := range entries {
		var c document.Criterion
		field := fmt.Sprintf("%s[%d]", Criteria, i)
		if json.Unmarshal(entry, &c.Text) != nil {
			inner, err := jsonobject.Parse(entry, o.Path+field+".", o.Errs)
			if err != nil {
				o.AddError(field, "is neither a string nor an object with check")
				continue
			}
			inner.Text("check", &c.Check)
			if inner.HasAny("type", "command", "expect", "timeout") {
				inner.AddError("command", "can be set by people only; name a check of the project: {\"check\": \"tests\"}")
			} else {
				inner.Only("check")
			}
			if c.Check == "" && !inner.HasAny("command", "type") {
				inner.AddError("check", "is empty")
			}
		}
		list = append(list, c)
	}
	in.Criteria, in.Checks = document.Criteria(list)
}

// Origin reads who asks, into an origin that may have something already. What is missing stays
// empty, and nothing here is believed: the subject that the message came on says who it really is.
func Origin(o *jsonobject.Object, into *forge.Origin) {
	origin, ok := o.Object("origin")
	if !ok {
		return
	}
	origin.Text("system", &into.System)
	origin.Text("event_id", &into.EventID)
	origin.Text("actor", &into.Actor)
	origin.Only("system", "event_id", "actor")
}

// Comments reads the comments that a system tells of, in place of asking for an intent; nil if
// there are none.
func Comments(o *jsonobject.Object) *forge.Comments {
	comments, ok := o.Object("comments")
	if !ok {
		return nil
	}
	var c forge.Comments
	comments.Whole("count", &c.Count)
	comments.Text("account", &c.Account)
	comments.Text("ref", &c.Ref)
	comments.Read("at", &c.At, "a time such as 2026-03-01T12:00:00Z")
	comments.Only("count", "account", "ref", "at")
	return &c
}

// CloudEvent reads a submission as a CloudEvent of version 1.0 in its JSON form: its source and id
// are the origin, so the same event twice is one intent. Attributes that are not known are
// extensions, and pass; fields of data that are not known do not. Mistakes are noted on the
// object, each by its field.
func CloudEvent(o *jsonobject.Object) (in forge.Intent) {
	var version, kind, source, id, content, at string
	for name, into := range map[string]*string{
		"specversion": &version, "type": &kind, "source": &source, "id": &id, "datacontenttype": &content, "time": &at,
	} {
		o.Text(name, into)
	}
	if version != changes.CloudEventsVersion {
		o.AddError("specversion", fmt.Sprintf("is %q; it can be %s", version, changes.CloudEventsVersion))
	}
	if kind != Type {
		o.AddError("type", fmt.Sprintf("is %q; it can be %s", kind, Type))
	}
	if source == "" {
		o.AddError("source", "is empty; say which system sends this")
	}
	if id == "" {
		o.AddError("id", "is empty; say which event of the source this is")
	}
	if content != "" && content != wire.TypeJSON {
		o.AddError("datacontenttype", fmt.Sprintf("is %q; it can be %s", content, wire.TypeJSON))
	}
	if _, err := time.Parse(time.RFC3339, at); at != "" && err != nil {
		o.AddError("time", "is not a time as in RFC 3339")
	}
	data, ok := o.Object("data")
	if !ok {
		if !o.Has("data") {
			o.AddError("data", "is missing; it is the intent, as a JSON object")
		}
		return in
	}
	in = Intent(data, "actor", "project")
	// Data may name the project and the person who asked; a system has no other place for them
	// here.
	data.Text("project", (*string)(&in.Project))
	data.Text("actor", &in.Origin.Actor)
	in.Origin.System, in.Origin.EventID = source, id
	return in
}
