// Package teams has the teams of a forge for tests, and answers questions about
// them in the dialects of Gitea, GitHub and GitLab.
//
// The dialects differ in how they say that an account is not in a team, and that we may not know:
//
//	        not in it       no such team        not shown to us
//	Gitea   404             not in the search   403
//	GitHub  404             404, and the team   as one that is not there
//	GitLab  404             404, and the group  as one that is not there
//
// So a back end that takes 404 for "not in it" has all accounts out of a team
// that it may not see, and the tests find that.
package teams

import (
	"net/http"
	"slices"
	"strings"
)

// team is a team of an organisation, or a group of GitLab. It is known by org/team.
type team struct {
	id      int64
	name    string
	members []int64
	hidden  bool
}

// Teams are all of them. The zero value has none.
type Teams struct{ list []*team }

// object is a JSON object.
type object = map[string]any

// Set makes a team, or gives it other members, by the numbers of the users. One
// that is hidden is shown to none who ask.
func (t *Teams) Set(name string, hidden bool, members ...int64) {
	if i := t.find(name); i >= 0 {
		t.list[i].members, t.list[i].hidden = members, hidden
		return
	}
	t.list = append(t.list, &team{int64(len(t.list) + 1), name, members, hidden})
}

// find returns the place of a team; -1 if there is none.
func (t *Teams) find(name string) int {
	return slices.IndexFunc(t.list, func(have *team) bool { return strings.EqualFold(have.name, name) })
}

// Search answers in Gitea's dialect with the teams of an organisation that have
// a text in their names.
func (t *Teams) Search(org, text string) (status int, out any) {
	found := []object{}
	for _, have := range t.list {
		if owner, name, _ := strings.Cut(have.name, "/"); strings.EqualFold(owner, org) && strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
			found = append(found, object{"id": have.id, "name": name})
		}
	}
	return http.StatusOK, object{"ok": true, "data": found}
}

// Member answers in Gitea's dialect whether a user, who is shown as such, is in a team.
func (t *Teams) Member(id, user int64, shown any) (status int, out any) {
	i := slices.IndexFunc(t.list, func(have *team) bool { return have.id == id })
	switch {
	case i < 0, !slices.Contains(t.list[i].members, user) && !t.list[i].hidden:
		return http.StatusNotFound, nil
	case t.list[i].hidden:
		return http.StatusForbidden, object{"message": "Must be a team member"}
	}
	return http.StatusOK, shown
}

// Membership answers in GitHub's dialect whether a user is in a team.
func (t *Teams) Membership(name string, user int64) (status int, out any) {
	i := t.find(name)
	if i < 0 || t.list[i].hidden || !slices.Contains(t.list[i].members, user) {
		return http.StatusNotFound, object{"message": "Not Found"}
	}
	return http.StatusOK, object{"state": "active", "role": "member", "url": "https://x.test"}
}

// Show answers in GitHub's dialect with a team, and in GitLab's with a group.
func (t *Teams) Show(name string) (status int, out any) {
	i := t.find(name)
	if i < 0 || t.list[i].hidden {
		return http.StatusNotFound, object{"message": "Not Found"}
	}
	return http.StatusOK, object{"id": t.list[i].id, "name": name}
}

// GroupMember answers in GitLab's dialect with a member of a group, who is shown as such.
func (t *Teams) GroupMember(name string, user int64, shown object) (status int, out any) {
	i := t.find(name)
	if i < 0 || t.list[i].hidden || !slices.Contains(t.list[i].members, user) {
		return http.StatusNotFound, object{"message": "404 Not found"}
	}
	shown["access_level"], shown["expires_at"], shown["membership_state"] = 10, nil, "active"
	return http.StatusOK, shown
}
