package notify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/changes"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// message is one notification: of one change, or a digest of several.
type message struct {
	// id is that of the CloudEvent. It is the same when a delivery is repeated.
	id string
	// kind is one of the kinds, or kindDigest.
	kind string
	// text is one line for a person, safe to print on a terminal.
	text string
	// event is the CloudEvent, as JSON.
	event []byte
	// changes are acknowledged once the message is delivered.
	changes []*changes.Delivered
}

// kindDigest is the kind of a message about several changes.
const kindDigest = "more"

// messageOf returns the notification of one change. Its event is the one that was published.
func messageOf(t *changes.Delivered) message {
	return message{id: t.ID, kind: string(kindOf(t)), text: line(t), event: t.Event, changes: []*changes.Delivered{t}}
}

// line returns a change as one line for a person. Escape sequences in titles and reasons,
// which others wrote, are removed.
func line(t *changes.Delivered) string {
	name := fmt.Sprintf("%s/%s", t.Project, t.Intent)
	what := ""
	switch kindOf(t) {
	case KindWaiting:
		what = "waits for you (" + string(t.Waiting) + ")"
	case KindBudget:
		what = "is out of budget"
	case KindFailed:
		what = "failed"
	case KindDone:
		what = "is done"
	}
	text := name + " " + what + ": " + t.Title
	if t.Reason != "" && t.Kind != changes.Done {
		text += " (" + t.Reason + ")"
	}
	return term.Short(term.Line(text), maxText)
}

// maxText bounds the text of a message, in characters.
const maxText = 300

// digest is the data of a notification of several changes.
type digest struct {
	// Count is the number of changes.
	Count int `json:"count"`
	// Kinds counts them by kind.
	Kinds map[string]int `json:"kinds"`
	// Text says the same in one line.
	Text string `json:"text"`
	// Events has the ids of the first changes, maxDigestEvents at most.
	Events []string `json:"events"`
}

// maxDigestEvents bounds the changes that a digest names.
const maxDigestEvents = 20

// digestOf returns the notification of changes that came too fast, of which there is at least
// one. The oldest change and their number make its id.
func digestOf(list []*changes.Delivered, now time.Time) (message, error) {
	data := digest{Count: len(list), Kinds: map[string]int{}}
	for _, t := range list {
		data.Kinds[string(kindOf(t))]++
		if len(data.Events) < maxDigestEvents {
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
	return message{id: id, kind: kindDigest, text: data.Text, event: event, changes: list}, err
}
