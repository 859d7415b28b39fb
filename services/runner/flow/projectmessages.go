package flow

import (
	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

// isByPerson reports whether an event is a person's, or another system's, wish.
func isByPerson(ev *forge.Event) bool {
	return forge.As[*forge.Reflect](ev.Message) != nil || forge.As[*forge.Teach](ev.Message) != nil || personal(ev)
}

// events returns messages to intents as events. It returns nil if there are none.
func (p *Project) events(out outbox.Messages) []forge.Event {
	if len(out) == 0 {
		return nil
	}
	list := make([]forge.Event, len(out))
	for i, m := range out {
		list[i] = forge.Event{ID: "project/" + m.ID, To: forge.Key{Project: p.key.Project, Intent: m.Intent}, Message: m.Message}
	}
	return list
}
