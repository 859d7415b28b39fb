package requests

import (
	"fmt"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/bus/internal/wire"
)

// submitType is the type of events that ask for an intent.
const submitType = "io.pfl-forge.intent.submit.v1"

// readIntentObject reads the fields of an intent that a system may set. Further fields are the
// caller's.
func readIntentObject(o *jsonObject, further ...string) forge.Intent {
	var in forge.Intent
	o.text("title", &in.Title)
	o.text("body", &in.Body)
	o.text("type", &in.Type)
	o.text("risk", (*string)(&in.Risk))
	o.text("source", (*string)(&in.Source))
	var depends []string
	o.list("depends_on", &depends)
	for _, id := range depends {
		in.DependsOn = append(in.DependsOn, forge.IntentID(id))
	}
	o.list("criteria", &in.Criteria)
	o.list("labels", &in.Labels)
	o.whole("priority", &in.Priority)
	o.text("agent", &in.Agent)
	o.amount("budget_usd", &in.BudgetUSD)
	o.text("recipe", &in.Recipe)
	o.read("with", &in.With, "an object with strings")
	o.only(append([]string{
		"title", "body", "type", "risk", "source", "depends_on", "criteria", "labels", "priority", "agent", "budget_usd", "recipe", "with",
	}, further...)...)
	return in
}

func readOrigin(o *jsonObject, into *forge.Origin) {
	origin, ok := o.object("origin")
	if !ok {
		return
	}
	origin.text("system", &into.System)
	origin.text("event_id", &into.EventID)
	origin.text("actor", &into.Actor)
	origin.only("system", "event_id", "actor")
}

// readCloudEvent reads a submission as a CloudEvent: its source and id are the
// origin. Attributes that are not known are extensions, and pass.
func readCloudEvent(o *jsonObject) request {
	var version, kind, source, id, content, at string
	for name, into := range map[string]*string{
		"specversion": &version, "type": &kind, "source": &source, "id": &id, "datacontenttype": &content, "time": &at,
	} {
		o.text(name, into)
	}
	if version != changes.CloudEventsVersion {
		o.note("specversion", fmt.Sprintf("is %q; it can be %s", version, changes.CloudEventsVersion))
	}
	if kind != submitType {
		o.note("type", fmt.Sprintf("is %q; it can be %s", kind, submitType))
	}
	if source == "" {
		o.note("source", "is empty; say which system sends this")
	}
	if id == "" {
		o.note("id", "is empty; say which event of the source this is")
	}
	if content != "" && content != wire.TypeJSON {
		o.note("datacontenttype", fmt.Sprintf("is %q; it can be %s", content, wire.TypeJSON))
	}
	if _, err := time.Parse(time.RFC3339, at); at != "" && err != nil {
		o.note("time", "is not a time as in RFC 3339")
	}
	r := request{intent: forge.Intent{}}
	data, ok := o.object("data")
	if !ok {
		if !o.has("data") {
			o.note("data", "is missing; it is the intent, as a JSON object")
		}
		return r
	}
	r.intent = readIntentObject(data, "actor", "project")
	data.text("project", (*string)(&r.intent.Project))
	data.text("actor", &r.intent.Origin.Actor)
	r.intent.Origin.System, r.intent.Origin.EventID = source, id
	return r
}
