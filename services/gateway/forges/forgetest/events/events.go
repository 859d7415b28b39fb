// Package events has the bodies of hooks of a fake forge in the dialects of GitHub and
// GitLab. Gitea's are those that package forgetest has already: the others are made of them.
package events

import (
	"encoding/json"
	"strings"
)

// Object is a JSON object.
type Object = map[string]any

// Commented is the event of a comment on an issue or a pull request.
const Commented = "issue_comment"

// Event is one that a forge tells.
type Event struct {
	// Name and Told are its name and its fields as Gitea has them.
	Name string
	Told Object
	// By did it, in Repository, to Issue or Pull: each as the dialect shows it,
	// and nil where it is about none. A comment on a pull request has both.
	By, Repository, Issue, Pull Object
	// Confidential says that the issue is, which GitLab has in the name.
	Confidential bool
}

// GitHub returns the name and the body of a hook of GitHub.
func (e Event) GitHub() (name string, body []byte) {
	name = e.Name
	o := Object{"action": e.Told["action"], "sender": e.By, "repository": e.Repository}
	for _, field := range []string{"sha", "context", "state", "check_run"} {
		if v, ok := e.Told[field]; ok {
			o[field] = v
		}
	}
	switch {
	case name == "issue_label":
		name, o["action"] = "issues", "labeled"
	case name == "pull_request_label":
		name, o["action"] = "pull_request", "labeled"
	case name == "pull_request_sync":
		name, o["action"] = "pull_request", "synchronize"
	case strings.HasPrefix(name, "pull_request_review"):
		name, o["action"] = "pull_request_review", "submitted"
	}
	switch {
	case e.Pull != nil && name != Commented:
		o["pull_request"] = e.Pull
	case e.Issue != nil:
		o["issue"] = e.Issue
	}
	return name, spell(o)
}

// GitLab returns the name and the body of a hook of GitLab.
func (e Event) GitLab() (name string, body []byte) {
	o := Object{"user": e.By, "project": e.Repository}
	name = "Issue Hook"
	switch {
	case e.Name == Commented:
		name, o["object_kind"] = "Note Hook", "note"
		said, _ := e.Told["comment"].(Object)
		about := Object{"id": said["id"], "note": said["body"], "system": false, "internal": false, "noteable_type": "Issue"}
		if o["object_attributes"] = about; e.Pull != nil {
			about["noteable_type"], o["merge_request"] = "MergeRequest", e.Pull
			break
		}
		o["issue"] = e.Issue
	case e.Issue == nil && e.Name == "status":
		name, o["object_kind"] = "Pipeline Hook", "pipeline"
		o["object_attributes"] = Object{"id": 1, "sha": e.Told["sha"], "status": e.Told["state"]}
	case e.Issue == nil:
		name, o["object_kind"], o["sha"] = "Job Hook", "build", e.Told["sha"]
	case e.Pull != nil:
		name, o["object_kind"], o["object_attributes"] = "Merge Request Hook", "merge_request", e.Pull
	default:
		o["object_kind"], o["object_attributes"] = "issue", e.Issue
		if e.Confidential {
			name = "Confidential Issue Hook"
		}
	}
	for _, field := range []string{"object_attributes", "issue", "merge_request"} { // whose labels and times have another form
		if it, ok := o[field].(Object); ok && it["labels"] != nil {
			it["labels"], it["created_at"], it["updated_at"] = []Object{{"title": "forge"}}, "2015-05-17 17:06:40 UTC", "2015-05-17 17:06:40 UTC"
		}
	}
	return name, spell(o)
}

// spell returns an object in JSON.
func spell(o Object) []byte {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // the forge has no others
	}
	return text
}
