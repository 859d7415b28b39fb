// Package reviews has the reviews of the pull requests of a forge for tests,
// and says them in the dialects of Gitea, GitHub and GitLab.
//
// A review has remarks about lines, each of which begins a discussion. An answer in one is a
// review of its own, as on GitHub, with one remark that names the first of the discussion.
package reviews

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

// Object is a JSON object.
type Object = map[string]any

// User returns an account as a dialect has it, by its login.
type User func(login string) Object

// The states of a review, in Gitea's words.
const (
	Approved = "APPROVED"
	Rejected = "REQUEST_CHANGES"
	Comment  = "COMMENT"
)

// Review is a review of a pull request.
type Review struct {
	ID int64
	// Commit is the head at the time of the review, By and State as Gitea has them.
	By, State, Body, Commit string
	// Patch is the id of the change that was reviewed.
	Patch string
	// Official says that the author could write at that time. Dismissed is one
	// that counts no more, and Stale one of another change than that of the head.
	Official, Dismissed, Stale bool
	// Remarks are those about lines.
	Remarks []*Remark
	// At is when it was sent. An answer in a discussion has a time of its own.
	At time.Time
}

// Remark is one about a line.
type Remark struct {
	// ID is the number of the remark, and Line that of the text at Commit.
	ID, Line           int64
	Path, Body, Commit string
	// To is the first remark of the discussion that this one answers in; 0 if it begins one.
	To int64
	// Resolver is the login that resolved the discussion; only its first remark has it.
	Resolver string
}

// List has the reviews of a pull request, the oldest first.
type List []*Review

// Remark returns a remark, and the review that it is of; nil if it is not there.
func (l List) Remark(id int64) (*Review, *Remark) {
	for _, v := range l {
		for _, m := range v.Remarks {
			if m.ID == id {
				return v, m
			}
		}
	}
	return nil, nil
}

// Answer adds an answer to the discussion that a remark begins, in a review of
// its own. It returns all reviews, and nil if there is none.
func (l List) Answer(first int64, answer *Review, id int64) (List, *Remark) {
	v, m := l.Remark(first)
	if m == nil || m.To != 0 {
		return l, nil
	}
	answer.State, answer.Commit, answer.Patch = Comment, v.Commit, v.Patch
	a := &Remark{ID: id, Line: m.Line, Path: m.Path, Body: answer.Body, Commit: m.Commit, To: m.ID}
	answer.Body, answer.Remarks = "", []*Remark{a}
	return append(l, answer), a
}

// Remove takes the remarks about a file away, as their author does. What was answered stays.
func (l List) Remove(path string) {
	for _, v := range l {
		v.Remarks = slices.DeleteFunc(v.Remarks, func(m *Remark) bool { return m.Path == path && m.To == 0 })
	}
}

// Resolve takes the discussions about a file as done.
func (l List) Resolve(path, by string) {
	for _, v := range l {
		for _, m := range v.Remarks {
			if m.Path == path {
				m.Resolver = by
			}
		}
	}
}

// isResolved reports whether the discussion of a remark is done.
func (l List) isResolved(m *Remark) bool {
	if m.To != 0 {
		if _, m = l.Remark(m.To); m == nil {
			return false
		}
	}
	return m.Resolver != ""
}

// Open reports whether a discussion is not resolved.
func (l List) Open() bool {
	return slices.ContainsFunc(l, func(v *Review) bool {
		return slices.ContainsFunc(v.Remarks, func(m *Remark) bool { return m.To == 0 && m.Resolver == "" })
	})
}

// Last returns the last decision of each user.
func (l List) Last() map[string]*Review {
	out := map[string]*Review{}
	for _, v := range l {
		if v.State != Comment {
			out[v.By] = v
		}
	}
	return out
}

// Gitea returns a review as Gitea does.
func (v *Review) Gitea(user User) Object {
	return Object{
		"id": v.ID, "user": user(v.By), "state": v.State, "body": v.Body, "commit_id": v.Commit, "official": v.Official,
		"dismissed": v.Dismissed, "stale": v.Stale, "comments_count": len(v.Remarks), "submitted_at": v.At,
	}
}

// GiteaRemarks returns the remarks of a review as Gitea does.
func (v *Review) GiteaRemarks(user User) (out []Object) {
	for _, m := range v.Remarks {
		o := Object{"id": m.ID, "user": user(v.By), "body": m.Body, "path": m.Path, "position": m.Line, "resolver": nil}
		if m.Resolver != "" {
			o["resolver"] = user(m.Resolver)
		}
		out = append(out, o)
	}
	return out
}

// GitHub returns a review as GitHub does, of a commit to which it may have been
// moved. Nothing in it says who counts.
func (v *Review) GitHub(user User, commit string) Object {
	state := map[string]string{Approved: "APPROVED", Rejected: "CHANGES_REQUESTED", Comment: "COMMENTED"}[v.State]
	if v.Dismissed && v.State == Approved {
		state = "DISMISSED"
	}
	return Object{
		"id": v.ID, "user": user(v.By), "state": state, "body": v.Body, "commit_id": commit, "submitted_at": v.At,
		"author_association": "CONTRIBUTOR",
	}
}

// GitHubRemark returns a remark of a review as GitHub does, while a pull request has a head.
func (v *Review) GitHubRemark(user User, m *Remark, head string) Object {
	o := Object{
		"id": m.ID, "pull_request_review_id": v.ID, "body": m.Body, "path": m.Path, "line": m.Line, "original_line": m.Line,
		"user": user(v.By), "created_at": v.At, "updated_at": v.At,
	}
	if m.Commit != head { // the line is gone
		o["line"] = nil
	}
	if m.To != 0 {
		o["in_reply_to_id"] = m.To
	}
	return o
}

// GitHubRemarks returns the remarks of all reviews.
func (l List) GitHubRemarks(user User, head string) (out []Object) {
	for _, v := range l {
		for _, m := range v.Remarks {
			out = append(out, v.GitHubRemark(user, m, head))
		}
	}
	return out
}

// GitHubThreads returns a page of one discussion, as GraphQL does.
func (l List) GitHubThreads(after any) Object {
	var all []Object
	for _, v := range l {
		for _, m := range v.Remarks {
			if m.To == 0 {
				all = append(all, Object{"isResolved": m.Resolver != "", "comments": Object{"nodes": []Object{{"databaseId": m.ID}}}})
			}
		}
	}
	text, _ := after.(string)
	at, _ := strconv.Atoi(text)
	nodes := all[min(at, len(all)):min(at+1, len(all))]
	return Object{"nodes": nodes, "pageInfo": Object{"hasNextPage": at+1 < len(all), "endCursor": strconv.Itoa(at + 1)}}
}

// Note returns a note as GitLab does.
type Note func(id int64, by, body string, at time.Time) Object

// systemNotes is added to the number of a review for that of the note by which
// GitLab says what it decides.
const systemNotes = 1_000_000

// GitLab returns the notes that reviews leave: their words, their remarks, and what
// GitLab writes itself. Each has in to the number of the note that begins its discussion.
func (l List) GitLab(note Note) (out []Object, to []int64) {
	add := func(v *Review, id, first int64, body string, more Object) {
		o := note(id, v.By, body, v.At)
		maps.Copy(o, more)
		out, to = append(out, o), append(to, first)
	}
	for _, v := range l {
		if v.Body != "" {
			add(v, v.ID, v.ID, v.Body, nil)
		}
		for _, m := range v.Remarks {
			first := m.ID
			if m.To != 0 {
				first = m.To
			}
			add(v, m.ID, first, m.Body, Object{
				"type": "DiffNote", "resolvable": true, "resolved": l.isResolved(m),
				"position": Object{"new_path": m.Path, "new_line": m.Line, "old_path": m.Path, "old_line": nil, "head_sha": v.Commit},
			})
		}
		if said := map[string]string{Approved: "approved this merge request", Rejected: "requested changes"}[v.State]; said != "" {
			add(v, v.ID+systemNotes, v.ID+systemNotes, said, Object{"system": true})
		}
	}
	return out, to
}
