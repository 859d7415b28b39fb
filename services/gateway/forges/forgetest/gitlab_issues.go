package forgetest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
)

// ofIssue wraps a function that is about an issue: a merge request of that number is another thing.
func (f *Lab) ofIssue(call labCall) labCall {
	return func(q *request, in *labIn) (int, any) {
		if q.issue.pull != nil || q.issue.confidential && q.user != q.issue.by && f.levelOf(q.repo, q.user) < 15 {
			return says(http.StatusNotFound, "404 Issue Not Found")
		}
		return call(q, in)
	}
}

// ofPull wraps a function that is about a merge request.
func (f *Lab) ofPull(call labCall) labCall {
	return func(q *request, in *labIn) (int, any) {
		if q.issue.pull == nil {
			return says(http.StatusNotFound, "404 Merge Request Not Found")
		}
		return call(q, in)
	}
}

// labIssue returns an issue as GitLab does.
func (f *Lab) labIssue(r *repo, i *issue) object {
	return object{
		"id": r.id*1000 + i.number, "iid": i.number, "project_id": r.id, "title": i.title, "description": i.body, "author": f.labUser(i.by, false),
		"labels": append([]string{}, i.labels...), "state": map[string]string{"open": "opened", "closed": "closed"}[i.state],
		"created_at": i.created, "updated_at": i.edited, "confidential": i.confidential,
	}
}

// showIssue returns an issue.
func (f *Lab) showIssue(q *request, _ *labIn) (int, any) {
	return http.StatusOK, f.labIssue(q.repo, q.issue)
}

// listLab lists issues or merge requests by a query.
func (f *Lab) listLab(is func(*issue) bool, show func(*repo, *issue) object) labCall {
	return func(q *request, _ *labIn) (int, any) {
		want := q.URL.Query()
		after, _ := time.Parse(time.RFC3339, want.Get("updated_after"))
		list := slices.Clone(q.repo.issues)
		slices.Reverse(list)
		if want.Get("order_by") == "updated_at" {
			slices.SortStableFunc(list, func(a, b *issue) int { return b.edited.Compare(a.edited) })
		}
		fits := func(o object, field, as string) bool { return want.Get(as) == "" || want.Get(as) == o[field] }
		var out []object
		for _, i := range list {
			if !is(i) || i.edited.Before(after) || want.Get("author_username") != "" && want.Get("author_username") != i.by {
				continue
			}
			o := show(q.repo, i)
			if (want.Get("state") == "all" || want.Get("state") == o["state"]) && fits(o, "source_branch", "source_branch") &&
				fits(o, "target_branch", "target_branch") {
				out = append(out, o)
			}
		}
		return http.StatusOK, hubPage(q, out)
	}
}

// editLab changes an issue or a merge request, for its author and for writers. Labels that are not
// there are made.
func (f *Lab) editLab(show func(*repo, *issue) object) labCall {
	return func(q *request, in *labIn) (int, any) {
		q.in.Title, q.in.State = in.Title, map[string]string{"close": "closed", "reopen": "open"}[in.StateEvent]
		if q.issue.pull != nil && (q.issue.pull.merge != "" || q.in.State == "open" && q.repo.Head(q.issue.pull.branch) == "") {
			q.in.State = "" // and it is answered as if it were
		}
		q.in.Body = in.Description
		if status, _ := f.editIssue(q); status >= http.StatusBadRequest {
			return status, nil
		}
		if in.Title != "" {
			q.issue.body = in.Description
		}
		f.addLabels(q, in.AddLabels)
		return http.StatusOK, show(q.repo, q.issue)
	}
}

// addLabels puts labels on.
func (f *Lab) addLabels(q *request, names string) {
	if names == "" {
		return
	}
	q.in.Labels = strings.Split(names, ",")
	_, _ = hubIssues{f.Hub}.label(q)
}

// labelEvents returns a page of the labels that were put on and taken off, the oldest first.
func (f *Lab) labelEvents(q *request, _ *labIn) (int, any) {
	var out []object
	for _, e := range q.issue.events {
		if e.kind == "label" {
			action, label := map[bool]string{true: "add", false: "remove"}[e.body == "1"], object{"id": 1, "name": e.label}
			out = append(out, object{"id": e.id, "user": f.labUser(e.by, false), "created_at": e.created, "action": action, "label": label})
		}
	}
	return http.StatusOK, hubPage(q, out)
}

// note returns an entry as a note. Those that GitLab itself wrote (system) and
// those that are internal are shown in its dialect alone.
func (f *Lab) note(e *event) object {
	return object{
		"id": e.id, "type": nil, "body": e.body, "author": f.labUser(e.by, false), "created_at": e.created, "updated_at": e.edited,
		"system": e.isSystem(), "internal": e.kind == "internal", "resolvable": false, "noteable_type": "Issue",
	}
}

// isSystem reports whether GitLab itself writes a note of it.
func (e *event) isSystem() bool {
	return slices.Contains([]string{"system", changedTitle, changedBody}, e.kind)
}

// allNotes returns all notes, the oldest first. A review leaves several.
func (f *Lab) allNotes(i *issue) []object { return reviews.Notes(f.discussions(i)) }

// discussions returns all notes by the discussion that they are in, the oldest
// first. A comment is one of its own.
func (f *Lab) discussions(i *issue) (out []object) {
	for _, e := range i.events {
		if e.kind == "comment" || e.kind == "internal" || e.isSystem() {
			out = reviews.Discuss(out, e.id, f.note(e))
		}
	}
	if i.pull != nil {
		for _, v := range i.pull.queue.Events {
			e := event{id: v.ID, kind: "system", by: i.pull.queue.Author(&v), body: v.GitLab(i.pull.queue.Train), created: v.At, edited: v.At}
			out = reviews.Discuss(out, v.ID, f.note(&e))
		}
		notes, first := i.pull.reviews.GitLab(func(id int64, by, body string, at time.Time) object {
			return f.note(&event{id: id, by: by, body: body, created: at, edited: at})
		})
		for n, o := range notes {
			out = reviews.Discuss(out, first[n], o)
		}
	}
	slices.SortStableFunc(out, reviews.Earlier)
	return out
}

// notes returns a page of the notes.
func (f *Lab) notes(q *request, _ *labIn) (int, any) {
	list := f.allNotes(q.issue)
	if q.URL.Query().Get("sort") == "desc" {
		slices.Reverse(list)
	}
	return http.StatusOK, hubPage(q, list)
}

// sayLab adds a note.
func (f *Lab) sayLab(q *request, in *labIn) (int, any) {
	q.in.Body = in.Body
	_, _ = f.say(q)
	e := q.issue.events[len(q.issue.events)-1]
	if in.Internal {
		e.kind = "internal"
	}
	return http.StatusCreated, f.note(e)
}

// noteOf returns the note that a path names, of the issue that it names.
func (q *request) noteOf() *event {
	i := slices.IndexFunc(q.issue.events, func(e *event) bool { return e.id == q.number("note") && e.kind == "comment" })
	if i < 0 {
		return nil
	}
	return q.issue.events[i]
}

// editNote changes a note, for its author.
func (f *Lab) editNote(q *request, in *labIn) (int, any) {
	e := q.noteOf()
	if e == nil || e.by != q.user {
		return says(http.StatusNotFound, "404 Note Not Found")
	}
	q.SetPathValue("id", q.PathValue("note"))
	q.in.Body = in.Body
	_, _ = f.editComment(q)
	return http.StatusOK, f.note(e)
}

// award adds a reaction, which updates the note. The same one again is not found.
func (f *Lab) award(q *request, in *labIn) (int, any) {
	e := q.noteOf()
	name := strings.Replace(in.Name, "thumbsdown", "-1", 1)
	if e == nil || slices.Contains(e.reactions, q.user+" "+name) {
		return says(http.StatusNotFound, `404 Award Emoji {:name=>["has already been taken"]} Not Found`)
	}
	e.reactions, e.edited = append(e.reactions, q.user+" "+name), f.now
	return http.StatusCreated, object{"id": f.next(), "name": in.Name, "user": f.labUser(q.user, false)}
}

// awards returns a page of the reactions to a note.
func (f *Lab) awards(q *request, _ *labIn) (int, any) {
	var out []object
	if e := q.noteOf(); e != nil {
		for n, r := range e.reactions {
			by, name, _ := strings.Cut(r, " ")
			out = append(out, object{"id": n + 1, "name": strings.Replace(name, "-1", "thumbsdown", 1), "user": f.labUser(by, false)})
		}
	}
	return http.StatusOK, hubPage(q, out)
}
