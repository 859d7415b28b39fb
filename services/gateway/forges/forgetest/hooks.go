package forgetest

import (
	"encoding/json"
	"fmt"

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

// commented is the event of a comment on an issue or a pull request.
const commented = "issue_comment"

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
	case i.pull != nil && event != commented: // a comment has the issue, as also a pull request is one
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
	o := object{"user": f.labUser(q.user, false), "project": object{"id": q.repo.id, "path_with_namespace": q.repo.name}}
	name := "Issue Hook"
	switch {
	case event == commented:
		name, o["object_kind"] = "Note Hook", "note"
		said, _ := told["comment"].(object)
		o["object_attributes"] = object{"id": said["id"], "note": said["body"], "system": false, "internal": false, "noteable_type": "Issue"}
		o["issue"] = f.labIssue(q.repo, i)
		if i.pull != nil {
			delete(o, "issue")
			o["object_attributes"].(object)["noteable_type"], o["merge_request"] = "MergeRequest", labPulls{f}.object(q.repo, i)
		}
	case i == nil && event == "status":
		name, o["object_kind"], o["object_attributes"] = "Pipeline Hook", "pipeline", object{"id": 1, "sha": told["sha"], "status": told["state"]}
	case i == nil:
		name, o["object_kind"], o["sha"] = "Job Hook", "build", told["sha"]
	case i.pull != nil:
		name, o["object_kind"], o["object_attributes"] = "Merge Request Hook", "merge_request", labPulls{f}.object(q.repo, i)
	default:
		o["object_kind"], o["object_attributes"] = "issue", f.labIssue(q.repo, i)
		if i.confidential {
			name = "Confidential Issue Hook"
		}
	}
	for _, field := range []string{"object_attributes", "issue", "merge_request"} { // whose labels and times have another form
		if it, ok := o[field].(object); ok && it["labels"] != nil {
			it["labels"], it["created_at"], it["updated_at"] = []object{{"title": "forge"}}, "2015-05-17 17:06:40 UTC", "2015-05-17 17:06:40 UTC"
		}
	}
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return func() { h.Post(name, id, body) }
}
