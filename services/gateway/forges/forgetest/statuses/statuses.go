// Package statuses has the statuses of commits on a forge for tests, in the
// dialects of Gitea, GitHub and GitLab.
//
// A status is the word of a check, which anyone who may write can give any name. The last of
// each name counts. A run of a check is GitHub's other kind of that: Apps alone write one.
package statuses

import (
	"slices"
	"strings"
	"time"
)

// Object is a JSON object.
type Object = map[string]any

// User returns an account as a dialect has it, by its login.
type User func(login string) Object

// Status is one that was written for a commit.
type Status struct {
	// Context is its name, and By who wrote it. State is in Gitea's words, as success,
	// pending, failure and error. Text is its line, and Address leads to more.
	ID                                        int64
	Commit, By, Context, State, Text, Address string
	At                                        time.Time
	// Ref and Allow are of GitLab's dialect: the branch of a job's pipeline,
	// and whether it may fail.
	Ref   string
	Allow bool
}

// Passed reports whether it says so.
func (s *Status) Passed() bool { return s.State == "success" }

// List has the statuses of a repository, the oldest first.
type List []*Status

// Of returns all statuses of a commit, the newest first.
func (l List) Of(commit string) (out List) {
	for _, s := range slices.Backward(l) {
		if s.Commit == commit {
			out = append(out, s)
		}
	}
	return out
}

// Latest returns the last status of each name for a commit, of each ref that
// pipelines have, in the order of their names.
func (l List) Latest(commit string) (out List) {
	for _, s := range l.Of(commit) {
		if !slices.ContainsFunc(out, func(t *Status) bool { return t.Context == s.Context && t.Ref == s.Ref }) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *Status) int { return strings.Compare(a.Context, b.Context) })
	return out
}

// Show returns each of them as a dialect does.
func (l List) Show(as func(*Status) Object) []Object {
	out := []Object{}
	for _, s := range l {
		out = append(out, as(s))
	}
	return out
}

// Gitea returns statuses as Gitea does.
func Gitea(user User) func(*Status) Object {
	return func(s *Status) Object {
		return Object{
			"id": s.ID, "status": s.State, "context": s.Context, "description": s.Text, "target_url": s.Address, "creator": user(s.By),
		}
	}
}

// GitHub returns statuses as GitHub does.
func GitHub(user User) func(*Status) Object {
	return func(s *Status) Object {
		o := Object{
			"id": s.ID, "state": s.State, "context": s.Context, "description": s.Text, "target_url": nil, "creator": user(s.By), "created_at": s.At,
		}
		if s.Address != "" {
			o["target_url"] = s.Address
		}
		return o
	}
}

// GitLab returns statuses as GitLab does.
func GitLab(user User) func(*Status) Object {
	return func(s *Status) Object {
		state := map[string]string{"failure": "failed", "error": "failed"}[s.State]
		if state == "" {
			state = s.State
		}
		return Object{
			"id": s.ID, "sha": s.Commit, "name": s.Context, "ref": s.Ref, "status": state, "description": s.Text, "target_url": s.Address,
			"author": user(s.By), "allow_failure": s.Allow,
		}
	}
}

// Run has the words of an App of GitHub about a commit.
type Run struct {
	// Status is queued, in_progress or completed, and Conclusion is empty until
	// then. Summary is the text in which an App says why, and App the name of that.
	Repository, Commit, Name, Status, Conclusion, Title, Summary, App string
}

// GitHub returns a run as GitHub does, with a number and the address of the forge.
func (c *Run) GitHub(id int, address string) Object {
	var conclusion any
	if c.Conclusion != "" {
		conclusion = c.Conclusion
	}
	return Object{
		"id": id, "name": c.Name, "head_sha": c.Commit, "status": c.Status, "conclusion": conclusion, "html_url": address,
		"output": Object{"title": c.Title, "summary": c.Summary, "text": nil}, "app": Object{"id": 1, "slug": c.App},
	}
}
