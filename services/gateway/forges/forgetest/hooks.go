package forgetest

import (
	"encoding/json"
	"fmt"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/events"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/wire"
)

// Mode says how the forge sends hooks.
type Mode = wire.Mode

// The ways of sending hooks.
const (
	Good    = wire.Good
	Lost    = wire.Lost
	Doubled = wire.Doubled
	Late    = wire.Late
)

// Send changes how hooks are sent.
func (f *Fake) Send(m Mode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks.Mode = m
}

// Release sends the hooks that were held back, the last one first, and returns when they are
// answered.
func (f *Fake) Release() {
	f.mu.Lock()
	held := f.hooks.Held()
	f.mu.Unlock()
	for _, send := range held {
		send()
	}
}

// tell sends a hook about an issue or a pull request, or about neither, to all who want it.
func (f *Fake) tell(q *request, i *issue, event string, o object) {
	o["sender"] = f.user(q.user)
	switch {
	case i == nil:
	case i.pull != nil && event != events.Commented: // a comment has the issue, as also a pull request is one
		o["number"], o["pull_request"] = i.number, pulls{f}.pullObject(q.repo, i)
	default:
		o["issue"] = f.issueObject(q.repo, i)
	}
	o["repository"] = object{"id": q.repo.id, "full_name": q.repo.name}
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	for _, h := range q.repo.hooks {
		id := fmt.Sprintf("delivery-%d", f.next())
		send := func() { h.Post(event, id, body) }
		switch h.Dialect {
		case wire.GitHub:
			send = f.Hub.hubSend(q, i, h, event, id, o)
		case wire.GitLab:
			send = f.Lab.labSend(q, i, h, event, id, o)
		}
		f.hooks.Send(send)
	}
}

// labSend returns the sending of a delivery in GitLab's dialect.
func (f *Lab) labSend(q *request, i *issue, h wire.Hook, event, id string, told object) func() {
	e := events.Event{Name: event, Told: told, By: f.labUser(q.user, false), Repository: object{"id": q.repo.id, "path_with_namespace": q.repo.name}}
	if i != nil {
		e.Issue, e.Confidential = f.labIssue(q.repo, i), i.confidential
		if i.pull != nil {
			e.Pull = labPulls{f}.object(q.repo, i)
		}
	}
	name, body := e.GitLab()
	return func() { h.Post(name, id, body) }
}
