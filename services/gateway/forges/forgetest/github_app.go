package forgetest

import (
	"crypto/rsa"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/apps"
)

// Install installs an App in repositories, and returns the installation's number.
func (f *Hub) Install(app string, key *rsa.PublicKey, repositories ...string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next() + 1000
	f.apps.Installations[id] = &apps.Installation{ID: id, App: app, Key: key, Repos: repositories}
	for _, name := range repositories {
		f.repos[strings.ToLower(name)].roles[AppBot] = "write"
	}
	return id
}

// Suspend suspends an installation, or lets it in again.
func (f *Hub) Suspend(installation int64, suspended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apps.Installations[installation].Suspended = suspended
}

// Grant replaces the permissions of an installation.
func (f *Hub) Grant(installation int64, permissions map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apps.Installations[installation].Permissions = permissions
}

// Revoke ends all tokens of installations before their time.
func (f *Hub) Revoke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.apps.Tokens)
}

// showApp returns the App itself.
func (f hubIssues) showApp(q *request) (int, any) {
	if q.user == "" {
		return f.apps.Unknown()
	}
	slug, _, _ := strings.Cut(AppBot, "[")
	return http.StatusOK, object{"id": 7, "slug": slug, "name": slug}
}

// makeToken makes a token of an installation, which is good for an hour.
func (f hubIssues) makeToken(q *request) (int, any) {
	return f.apps.Make(q.user, q.number("id"), fmt.Sprintf("ghs_%d", f.next()), f.now.Add(time.Hour))
}

// showInstallation returns that of a repository.
func (f hubIssues) showInstallation(q *request) (int, any) {
	return f.apps.Find(q.user, f.isNow(q.repo.name))
}

// Rename gives a repository another name. The former one leads to it until another repository
// has it.
func (f *Hub) Rename(name, now string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.repos[strings.ToLower(name)]
	delete(f.repos, strings.ToLower(name))
	r.name = now
	f.repos[strings.ToLower(now)] = r
	f.moved[strings.ToLower(name)] = r.id
}

// RenameUser gives a user another name, and the former one to a new user, as an intruder would
// take it. Numbers, roles and what was written stay with the person.
func (f *Hub) RenameUser(login, now string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[slices.Index(f.users, login)] = now
	f.users = append(f.users, login)
	to := func(s *string) {
		if *s == login {
			*s = now
		}
	}
	for _, r := range f.repos {
		if role, ok := r.roles[login]; ok {
			delete(r.roles, login)
			r.roles[now] = role
		}
		for _, i := range r.issues {
			to(&i.by)
			for _, e := range i.events {
				to(&e.by)
			}
			if i.pull != nil {
				for _, v := range i.pull.reviews {
					to(&v.By)
				}
			}
		}
	}
}

// UseUp leaves so many requests of the primary limit, until a time.
func (f *Hub) UseUp(left int, reset time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.reset = left, reset
}

// Left returns how many requests the primary limit still allows.
func (f *Hub) Left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}

// Record has each exchange in GitHub's dialect told.
func (f *Hub) Record(to func(Exchange)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record = to
}
