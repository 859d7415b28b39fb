package forgetest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/events"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/protect"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/wire"
)

// object is a JSON object.
type object = map[string]any

// self returns the user of the token.
func (f *Fake) self(q *request) (int, any) { return http.StatusOK, f.user(q.user) }

// user returns a user as the API does.
func (f *Fake) user(login string) object { return object{"id": f.id(login), "login": login} }

// makeRepo makes a repository of the user, which everybody can read.
func (f *Fake) makeRepo(q *request) (int, any) {
	name := q.user + "/" + q.in.Name
	if f.repos[name] != nil {
		return http.StatusConflict, nil
	}
	f.repos[name] = &repo{id: f.next(), name: name, roles: map[string]string{}, rules: map[string]*protect.Rule{}}
	f.initRepo(f.repos[name])
	return http.StatusCreated, object{"id": f.repos[name].id, "full_name": name}
}

// showRepo returns the number and the name of a repository.
func (f *Fake) showRepo(q *request) (int, any) {
	return http.StatusOK, object{"id": q.repo.id, "full_name": q.repo.name, "default_merge_style": "merge"}
}

// collaborate gives a user a role, for administrators.
func (f *Fake) collaborate(q *request) (int, any) {
	if !q.repo.may(q.user, "admin") {
		return http.StatusForbidden, nil
	}
	q.repo.roles[q.PathValue("user")] = q.in.Permission
	return http.StatusNoContent, nil
}

// permission tells that of others to administrators only, as Gitea does.
func (f *Fake) permission(q *request) (int, any) {
	user := q.PathValue("user")
	if !q.repo.may(q.user, "admin") && user != q.user {
		return http.StatusForbidden, nil
	}
	if !slices.Contains(f.users, user) {
		return http.StatusNotFound, nil
	}
	return http.StatusOK, object{"permission": q.repo.roleOf(user, "owner"), "user": f.user(user)}
}

// makeHook has an address told of all that happens from now on, in a dialect.
func (f *Fake) makeHook(dialect string) func(*request) (int, any) {
	return func(q *request) (int, any) {
		q.repo.hooks = append(q.repo.hooks, wire.Hook{URL: q.in.Config.URL, Secret: q.in.Config.Secret, Dialect: dialect})
		return http.StatusCreated, object{"id": f.next()}
	}
}

// listIssues returns a page of the issues that changed since a time, the newest first, as Gitea
// does.
func (f *Fake) listIssues(q *request) (int, any) {
	want := q.URL.Query()
	since, _ := time.Parse(time.RFC3339, want.Get("since"))
	var out []object
	for _, i := range slices.Backward(q.repo.issues) {
		by, state := want.Get("created_by"), want.Get("state")
		if !i.edited.Before(since) && (i.pull != nil) == (want.Get("type") == "pulls") && (by == "" || by == i.by) &&
			(state == "all" || state == i.state) {
			out = append(out, f.issueObject(q.repo, i))
		}
	}
	return http.StatusOK, pageOf(q, out)
}

// usualPage is the largest page at first, smaller than those that are asked for, as an operator
// may set it.
const usualPage = 3

// LargePages has pages be as large as they are asked for from now on, as most forges do.
func (f *Fake) LargePages() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.page = 100
}

// pageOf returns the page of a list that a request asks for.
func pageOf(q *request, all []object) []object {
	return wire.Page(q.Request, "limit", q.page, nil, all)
}

// openIssue opens an issue. Everybody may.
func (f *Fake) openIssue(q *request) (int, any) {
	i := &issue{number: int64(len(q.repo.issues) + 1), by: q.user, title: q.in.Title, body: q.in.Body, state: "open", created: f.now, edited: f.now}
	q.repo.issues = append(q.repo.issues, i)
	f.tell(q, i, "issues", object{"action": "opened"})
	return http.StatusCreated, f.issueObject(q.repo, i)
}

// editIssue changes an issue, for its author and for writers.
func (f *Fake) editIssue(q *request) (int, any) {
	if q.user != q.issue.by && !q.repo.may(q.user, "write", "admin") {
		return http.StatusForbidden, nil
	}
	action := "edited"
	if q.in.Title != "" && q.in.Title != q.issue.title {
		f.happened(q, event{kind: changedTitle, body: "changed title from **" + q.issue.title + "** to **" + q.in.Title + "**"})
		q.issue.title = q.in.Title
	}
	if q.in.Body != "" && q.in.Body != q.issue.body {
		f.happened(q, event{kind: changedBody, body: "changed the description"})
		q.issue.body = q.in.Body
	}
	if q.in.State != "" && q.in.State != q.issue.state {
		q.issue.state, action = q.in.State, map[string]string{"closed": "closed", "open": "reopened"}[q.in.State]
		f.happened(q, event{kind: map[string]string{"closed": "close", "open": "reopen"}[q.in.State]})
	}
	f.tell(q, q.issue, q.kind("issues", "pull_request"), object{"action": action})
	return http.StatusCreated, f.issueObject(q.repo, q.issue)
}

// The kinds of edits.
const (
	changedTitle = "change_title"
	changedBody  = "change_body"
)

// happened adds an event of a user to an issue.
func (f *Fake) happened(q *request, e event) {
	e.id, e.by, e.created, e.edited, q.issue.edited = f.next(), q.user, f.now, f.now, f.now
	q.issue.events = append(q.issue.events, &e)
}

// kind returns the name of an event for an issue, or for a pull request if the request is about
// one.
func (q *request) kind(issue, pull string) string {
	if q.issue.pull != nil {
		return pull
	}
	return issue
}

// issueObject returns an issue as the API and the hooks do.
func (f *Fake) issueObject(r *repo, i *issue) object {
	labels := []object{}
	for _, l := range i.labels {
		labels = append(labels, object{"name": l})
	}
	var pull any
	if i.pull != nil {
		pull = object{"merged": i.pull.merge != ""}
	}
	return object{
		"number": i.number, "title": i.title, "body": i.body, "user": f.user(i.by), "labels": labels, "state": i.state,
		"created_at": i.created, "updated_at": i.edited, "pull_request": pull,
		"repository": object{"id": r.id, "full_name": r.name},
	}
}

// label puts labels on, for those who may.
func (f *Fake) label(q *request) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return http.StatusForbidden, nil
	}
	for _, name := range q.in.Labels {
		if slices.Contains(q.repo.labels, name) && !slices.Contains(q.issue.labels, name) {
			q.issue.labels = append(q.issue.labels, name)
			f.happened(q, event{kind: "label", body: "1", label: name})
		}
	}
	f.tell(q, q.issue, q.kind("issue_label", "pull_request_label"), object{"action": "label_updated"})
	return http.StatusOK, f.issueObject(q.repo, q.issue)["labels"]
}

// unlabel takes a label off, for those who may. Its number is its place in the repository's list.
func (f *Fake) unlabel(q *request) (int, any) {
	n := q.number("id") - 1
	if !q.repo.may(q.user, "write", "admin") || n < 0 || n >= int64(len(q.repo.labels)) {
		return http.StatusForbidden, nil
	}
	off := q.repo.labels[n]
	q.issue.labels = slices.DeleteFunc(q.issue.labels, func(l string) bool { return l == off })
	f.happened(q, event{kind: "label", label: off})
	f.tell(q, q.issue, "issue_label", object{"action": "label_updated"})
	return http.StatusNoContent, nil
}

// timeline returns a page of what happened to an issue, the oldest first. Of an
// edit of its body, Gitea has nothing there.
func (f *Fake) timeline(q *request) (int, any) {
	var out []object
	for _, e := range q.issue.events {
		if e.kind != changedBody {
			out = append(out, f.eventObject(e))
		}
	}
	if q.issue.pull != nil {
		for _, v := range q.issue.pull.queue.Events {
			out = append(out, f.eventObject(&event{id: v.ID, kind: v.Gitea(), by: v.By, created: v.At, edited: v.At}))
		}
	}
	return http.StatusOK, pageOf(q, out)
}

// eventObject returns an entry of the timeline, or a comment, as the API does.
func (f *Fake) eventObject(e *event) object {
	o := object{"id": e.id, "type": e.kind, "user": f.user(e.by), "body": e.body, "created_at": e.created, "updated_at": e.edited}
	if e.label != "" {
		o["label"] = object{"name": e.label}
	}
	return o
}

// listComments returns all comments that changed since a time. Gitea has no pages here.
func (f *Fake) listComments(q *request) (int, any) {
	since, _ := time.Parse(time.RFC3339, q.URL.Query().Get("since"))
	out := []object{}
	for _, e := range q.issue.events {
		if e.kind == "comment" && !e.edited.Before(since) {
			out = append(out, f.eventObject(e))
		}
	}
	return http.StatusOK, out
}

// say adds a comment. Everybody may.
func (f *Fake) say(q *request) (int, any) {
	f.happened(q, event{kind: "comment", body: q.in.Body})
	e := q.issue.events[len(q.issue.events)-1]
	f.tell(q, q.issue, events.Commented, object{"action": "created", "comment": f.eventObject(e)})
	return http.StatusCreated, f.eventObject(e)
}

// comment returns the comment that a path names, and its issue.
func (q *request) comment() (*issue, *event) {
	for _, i := range q.repo.issues {
		for _, e := range i.events {
			if e.kind == "comment" && e.id == q.number("id") {
				return i, e
			}
		}
	}
	return nil, nil
}

// editComment changes a comment, for its author and for administrators.
func (f *Fake) editComment(q *request) (int, any) {
	i, e := q.comment()
	switch {
	case e == nil:
		return http.StatusNotFound, nil
	case q.user != e.by && !q.repo.may(q.user, "admin"):
		return http.StatusForbidden, nil
	}
	e.body, e.edited, i.edited = q.in.Body, f.now, f.now
	f.tell(q, i, events.Commented, object{"action": "edited", "comment": f.eventObject(e)})
	return http.StatusOK, f.eventObject(e)
}

// react adds a reaction; the same one again changes nothing.
func (f *Fake) react(q *request) (int, any) {
	_, e := q.comment()
	if e == nil {
		return http.StatusNotFound, nil
	}
	reaction := q.user + " " + q.in.Content
	if !slices.Contains(e.reactions, reaction) {
		e.reactions = append(e.reactions, reaction)
	}
	return http.StatusCreated, object{"content": q.in.Content}
}

// Comment is one as tests see it.
type Comment struct {
	ID        int64
	By, Body  string
	Reactions []string
}

// Comments returns the comments of an issue.
func (f *Fake) Comments(name string, number int64) []Comment {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Comment
	for _, i := range f.repos[strings.ToLower(name)].issues {
		for _, e := range i.events {
			if i.number == number && e.kind == "comment" {
				out = append(out, Comment{ID: e.id, By: e.by, Body: e.body, Reactions: slices.Clone(e.reactions)})
			}
		}
	}
	return out
}
