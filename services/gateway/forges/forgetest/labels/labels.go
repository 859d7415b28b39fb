// Package labels has the labels of a repository of a fake forge, as Gitea's API
// makes and lists them.
//
// Package forgetest answers requests with it. A name is there as often as it
// was made, as on Gitea, so that a client that makes one twice is found out.
package labels

import (
	"net/http"
	"slices"
)

// List has the names of the labels that issues of a repository can have, in the
// order in which they were made.
type List []string

// Make makes a label. It returns a status of HTTP and the answer in JSON; one
// without a name is refused as incomplete.
func (l *List) Make(name string) (int, any) {
	if name == "" {
		return http.StatusUnprocessableEntity, map[string]any{"message": "[Name]: Required"}
	}
	*l = append(*l, name)
	return http.StatusCreated, map[string]any{"name": name}
}

// Show returns all labels, as Make does.
func (l *List) Show() (int, any) {
	out := []map[string]any{}
	for _, name := range *l {
		out = append(out, map[string]any{"name": name})
	}
	return http.StatusOK, out
}

// GitHub returns one label as GitHub does.
func (l *List) GitHub(name string) (int, any) {
	if !slices.Contains(*l, name) {
		return http.StatusNotFound, map[string]any{"message": "Not Found"}
	}
	return http.StatusOK, map[string]any{"id": 1, "name": name, "color": "00aabb"}
}

// GitLab returns one label as GitLab does.
func (l *List) GitLab(name string) (int, any) {
	if !slices.Contains(*l, name) {
		return http.StatusNotFound, map[string]any{"message": "404 Label Not Found"}
	}
	return http.StatusOK, map[string]any{"id": 1, "name": name, "color": "#00aabb"}
}
