package notify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// message is one notification: of one change, or of several that came too fast.
type message struct {
	id    string
	kind  string // one of the kinds, or more
	text  string // one line for a person
	event []byte // a CloudEvent
	told  []*bus.Told
}

// kindMore is what a notification about several changes is of.
const kindMore = "more"

// single is the notification of one change: what was published, as it is.
func single(t *bus.Told) message {
	return message{id: t.ID, kind: string(kindOf(t)), text: line(t), event: t.Event, told: []*bus.Told{t}}
}

// line says a change in one line. What others wrote in it is safe to print.
func line(t *bus.Told) string {
	name := fmt.Sprintf("%s/%s", t.Project, t.Intent)
	what := ""
	switch kindOf(t) {
	case KindWaiting:
		what = "waits for you (" + string(t.Waiting) + ")"
	case KindBudget:
		what = "has no money to go on"
	case KindFailed:
		what = "failed"
	case KindDone:
		what = "is done"
	}
	text := name + " " + what + ": " + t.Title
	if t.Reason != "" && t.What != bus.WhatDone {
		text += " (" + t.Reason + ")"
	}
	return term.Short(term.Line(text), maxText)
}

// maxText bounds a line, in bytes.
const maxText = 300

// more is the data of a notification of several changes.
type more struct {
	Count  int            `json:"count"`
	Kinds  map[string]int `json:"kinds"`
	Text   string         `json:"text"`
	Events []string       `json:"events"` // the ids of the first of them
}

// maxNamed bounds the changes that a notification of several names.
const maxNamed = 20

// several is the notification of changes that came too fast.
func several(list []*bus.Told, now time.Time) (message, error) {
	data := more{Count: len(list), Kinds: map[string]int{}}
	for _, t := range list {
		data.Kinds[string(kindOf(t))]++
		if len(data.Events) < maxNamed {
			data.Events = append(data.Events, t.ID)
		}
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(data.Kinds)) {
		parts = append(parts, fmt.Sprintf("%d %s", data.Kinds[kind], kind))
	}
	data.Text = fmt.Sprintf("%d more: %s", len(list), strings.Join(parts, ", "))
	id := list[0].ID + "+" + fmt.Sprint(len(list)-1)
	event, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": id, "source": "/pfl-forge", "type": "io.pfl-forge.notification.more.v1",
		"time": now.UTC().Format(time.RFC3339), "datacontenttype": "application/json", "data": data,
	})
	return message{id: id, kind: kindMore, text: data.Text, event: event, told: list}, err
}
