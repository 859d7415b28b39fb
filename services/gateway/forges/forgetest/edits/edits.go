// Package edits has the edits of the title and the body of an issue of a fake
// forge, as GitHub's GraphQL tells them. Gitea's API and GitLab's tell theirs
// in lists of all that happened to an issue.
package edits

import (
	"strings"
	"time"
)

// Object is a JSON object.
type Object = map[string]any

// Edit is one of a title, or of a body.
type Edit struct {
	// By has the id, the login and the type of who made it, as GitHub's other API does.
	By    Object
	At    time.Time
	Title bool
}

// GitHub returns an issue with its edits, which come with the oldest first: the newest
// of its body are the first there, and the text that it was opened with is one of them.
func GitHub(opened Edit, list []Edit) Object {
	bodies, titles, last := []Object{}, []Object{}, any(nil)
	add := func(to *[]Object, at, by string, e Edit) {
		login, _ := e.By["login"].(string)
		actor := Object{"__typename": e.By["type"], "login": strings.TrimSuffix(login, "[bot]"), "databaseId": e.By["id"]}
		*to = append([]Object{{at: e.At, by: actor}}, *to...)
	}
	for _, e := range list {
		if e.Title {
			add(&titles, "createdAt", "actor", e)
			continue
		}
		if last == nil {
			add(&bodies, "editedAt", "editor", opened)
		}
		add(&bodies, "editedAt", "editor", e)
		last = e.At
	}
	return Object{"repository": Object{"issue": Object{
		"createdAt": opened.At, "lastEditedAt": last, "userContentEdits": Object{"nodes": bodies}, "timelineItems": Object{"nodes": titles},
	}}}
}
