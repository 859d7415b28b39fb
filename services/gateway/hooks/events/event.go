package events

import (
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// fieldError says which field of a delivery is wrong; an empty one stands for the whole body.
type fieldError struct{ field, reason string }

func (e *fieldError) Error() string { return strings.TrimPrefix(e.field+": "+e.reason, ": ") }

// cloudEvent is one that is made of a delivery in another form.
type cloudEvent struct {
	SpecVersion string          `json:"specversion"`
	Type        string          `json:"type"`
	Source      string          `json:"source"`
	ID          string          `json:"id"`
	Time        string          `json:"time,omitempty"`
	ContentType string          `json:"datacontenttype"`
	Data        json.RawMessage `json:"data,omitempty"`
}

// eventOf returns the CloudEvent, as JSON, that a delivery to a hook of a kind is,
// or stands for. system is the one whose hook it is. What is in it the API reads.
func eventOf(kind hooks.Kind, system string, d *deliveries.Delivery) (json.RawMessage, error) {
	if !json.Valid(d.Body) {
		return nil, &fieldError{"", "is not JSON"}
	}
	media, _, _ := mime.ParseMediaType(d.ContentType)
	e := cloudEvent{SpecVersion: "1.0", ContentType: "application/json", Type: d.Event, Data: d.Body}
	switch {
	case kind == hooks.CloudEvents && media == "application/cloudevents+json":
		return d.Body, nil
	case kind == hooks.CloudEvents && media != "" && media != "application/json":
		return nil, &fieldError{"datacontenttype", fmt.Sprintf("is %.100q; it can be application/json", media)}
	case kind == hooks.CloudEvents:
		if e.ID, e.Source = hooks.EventNamed(d.ID); e.Source == "" {
			e.Source = system
		}
	default:
		var sent struct {
			Type      string          `json:"type"`
			Timestamp string          `json:"timestamp"`
			Data      json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(d.Body, &sent); err != nil {
			return nil, &fieldError{"", "is no object with type, timestamp and data, as the Standard Webhooks have it"}
		}
		e.ID, e.Source, e.Type, e.Time, e.Data = d.ID, system, sent.Type, sent.Timestamp, sent.Data
	}
	return json.Marshal(e)
}

// projectOf returns the project that an event is for: the one that its data
// names, or else the only one that the entry has.
func projectOf(event json.RawMessage, t *tokens.Token) (forge.ProjectID, error) {
	var e struct {
		Data struct {
			Project string `json:"project"`
		} `json:"data"`
	}
	_ = json.Unmarshal(event, &e) // the API tells what is wrong
	if e.Data.Project != "" {
		p, err := forge.ParseProjectID(e.Data.Project)
		if err != nil {
			return "", &fieldError{"data.project", err.Error()}
		}
		return p, nil
	}
	if only := t.Named(); len(only) == 1 && !t.Everywhere() {
		return only[0], nil
	}
	return "", &fieldError{"data.project", "is missing, and the entry " + t.Name + " has several projects"}
}
