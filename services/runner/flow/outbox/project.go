package outbox

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// Project is a message from an intent to its project. Number counts the
// messages under the key, so that the same decision always makes the same id.
type Project struct {
	From   forge.Key
	Key    string
	Number int
	Reply  bool // an answer is waited for
	Event  forge.Event
}

// SendToProject sends a message to the project of an intent.
func (o *State) SendToProject(eff *forge.Effects, p Project) {
	ev := p.Event
	ev.ID = fmt.Sprintf("%s/%s/%d", p.From.Intent, p.Key, p.Number)
	ev.To = p.From.ProjectKey()
	ev.Actor = string(p.From.Intent)
	o.Send(eff, Message{Key: p.Key, Reply: p.Reply, Event: ev})
}

// Events returns the messages as events; nil if there are none.
func (m *Messages) Events(project forge.ProjectID) []forge.Event {
	if len(*m) == 0 {
		return nil
	}
	list := make([]forge.Event, len(*m))
	for i, to := range *m {
		list[i] = forge.Event{ID: "project/" + to.ID, To: forge.Key{Project: project, Intent: to.Intent}, Message: to.Message}
	}
	return list
}
