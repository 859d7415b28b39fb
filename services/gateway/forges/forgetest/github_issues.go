package forgetest

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/edits"
)

// hubIssues answers in GitHub's dialect what is about accounts, repositories and issues.
type hubIssues struct{ *Hub }

// hubUser returns a user as GitHub does.
func (f *Hub) hubUser(login string) object {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return object{"id": f.id(login), "login": login, "type": kind}
}

// self returns the user of the token. An App's has none.
func (f hubIssues) self(q *request) (int, any) {
	if q.user == AppBot {
		return says(http.StatusForbidden, "Resource not accessible by integration")
	}
	return http.StatusOK, f.hubUser(q.user)
}

// showUser returns a user by the name.
func (f hubIssues) showUser(q *request) (int, any) {
	if !slices.Contains(f.users, q.PathValue("user")) {
		return says(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, f.hubUser(q.PathValue("user"))
}

// member says that the owner is no organisation.
func (f hubIssues) member(*request) (int, any) { return says(http.StatusNotFound, "Not Found") }

// showRepo returns the number and the name of a repository.
func (f hubIssues) showRepo(q *request) (int, any) {
	may := map[string]bool{"pull": true, "push": q.repo.may(q.user, "write", "admin"), "admin": q.repo.may(q.user, "admin")}
	return http.StatusOK, object{"id": q.repo.id, "full_name": q.repo.name, "permissions": may}
}

// makeLabel makes a label, for writers.
func (f hubIssues) makeLabel(q *request) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return http.StatusNotFound, nil
	}
	return q.repo.labels.Make(q.in.Name)
}

// permission tells that of others to writers.
func (f hubIssues) permission(q *request) (int, any) {
	user := q.PathValue("user")
	if !q.repo.may(q.user, "write", "admin") {
		return says(http.StatusForbidden, "Must have push access to view collaborator permission.")
	}
	if !slices.Contains(f.users, user) {
		return says(http.StatusNotFound, user+" is not a user")
	}
	role := q.repo.roleOf(user, "admin")
	permission := cmp.Or(map[string]string{"maintain": "write", "triage": "read"}[role], role)
	return http.StatusOK, object{"permission": permission, "role_name": role, "user": f.hubUser(user)}
}

// hubIssue returns an issue as GitHub does.
func (f *Hub) hubIssue(r *repo, i *issue) object {
	labels := []object{}
	for _, l := range i.labels {
		labels = append(labels, object{"name": l})
	}
	o := object{
		"number": i.number, "title": i.title, "body": i.body, "user": f.hubUser(i.by), "labels": labels, "state": i.state,
		"created_at": i.created, "updated_at": i.edited, "repository_url": f.srv.URL + hubAPI + "/repos/" + r.name,
	}
	if i.body == "" {
		o["body"] = nil
	}
	if i.pull != nil {
		o["pull_request"] = object{"url": f.srv.URL, "html_url": f.srv.URL, "diff_url": f.srv.URL, "patch_url": f.srv.URL}
	}
	return o
}

// list returns a page of the issues and pull requests that changed since a time.
func (f hubIssues) list(q *request) (int, any) {
	want := q.URL.Query()
	since, _ := time.Parse(time.RFC3339, want.Get("since"))
	list := slices.Clone(q.repo.issues)
	slices.SortStableFunc(list, func(a, b *issue) int {
		if want.Get("direction") == "asc" {
			a, b = b, a
		}
		return b.edited.Compare(a.edited)
	})
	var out []object
	for _, i := range list {
		if state := want.Get("state"); !i.edited.Before(since) && (state == "all" || state == i.state) {
			out = append(out, f.hubIssue(q.repo, i))
		}
	}
	return http.StatusOK, hubPage(q, out)
}

// edit changes an issue.
func (f hubIssues) edit(q *request) (int, any) {
	status, _ := f.editIssue(q)
	if status >= http.StatusBadRequest {
		return says(status, "Must have admin rights to Repository.")
	}
	return http.StatusOK, f.hubIssue(q.repo, q.issue)
}

// events returns a page of what happened to an issue, the oldest first.
func (f hubIssues) events(q *request) (int, any) {
	var out []object
	for _, e := range q.issue.events {
		o := object{"id": e.id, "actor": f.hubUser(e.by), "created_at": e.created}
		switch e.kind {
		case "label":
			o["event"], o["label"] = map[bool]string{true: "labeled", false: "unlabeled"}[e.body == "1"], object{"name": e.label, "color": "00aabb"}
		case "close":
			o["event"] = "closed"
		case "reopen":
			o["event"] = "reopened"
		default:
			continue
		}
		out = append(out, o)
	}
	return http.StatusOK, hubPage(q, out)
}

// hubComment returns a comment as GitHub does.
func (f *Hub) hubComment(e *event) object {
	return object{"id": e.id, "user": f.hubUser(e.by), "body": e.body, "created_at": e.created, "updated_at": e.edited}
}

// comments returns a page of the comments that changed since a time.
func (f hubIssues) comments(q *request) (int, any) {
	since, _ := time.Parse(time.RFC3339, q.URL.Query().Get("since"))
	var out []object
	for _, e := range q.issue.events {
		if e.kind == "comment" && !e.edited.Before(since) {
			out = append(out, f.hubComment(e))
		}
	}
	return http.StatusOK, hubPage(q, out)
}

// say adds a comment.
func (f hubIssues) say(q *request) (int, any) {
	status, _ := f.Fake.say(q)
	return status, f.hubComment(q.issue.events[len(q.issue.events)-1])
}

// editComment changes a comment, for its author and for writers.
func (f hubIssues) editComment(q *request) (int, any) {
	status, _ := f.Fake.editComment(q)
	if status >= http.StatusBadRequest {
		return says(status, http.StatusText(status))
	}
	_, e := q.comment()
	return status, f.hubComment(e)
}

// react adds a reaction; the same one again answers 200.
func (f hubIssues) react(q *request) (int, any) {
	_, e := q.comment()
	had := e != nil && slices.Contains(e.reactions, q.user+" "+q.in.Content)
	status, _ := f.Fake.react(q)
	switch {
	case status >= http.StatusBadRequest:
		return says(status, "Not Found")
	case had:
		status = http.StatusOK
	}
	return status, object{"id": 1, "user": f.hubUser(q.user), "content": q.in.Content}
}

// label puts labels on, and makes those that are not there.
func (f hubIssues) label(q *request) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return says(http.StatusForbidden, "Must have admin rights to Repository.")
	}
	for _, name := range q.in.Labels {
		if !slices.Contains(q.repo.labels, name) {
			q.repo.labels = append(q.repo.labels, name)
		}
	}
	_, _ = f.Fake.label(q)
	return http.StatusOK, f.hubIssue(q.repo, q.issue)["labels"]
}

// edits returns an issue with its edits, as GraphQL does.
func (f *Hub) edits(i *issue) object {
	var list []edits.Edit
	for _, e := range i.events {
		if e.kind == changedTitle || e.kind == changedBody {
			list = append(list, edits.Edit{By: f.hubUser(e.by), At: e.created, Title: e.kind == changedTitle})
		}
	}
	return edits.GitHub(edits.Edit{By: f.hubUser(i.by), At: i.created}, list)
}
