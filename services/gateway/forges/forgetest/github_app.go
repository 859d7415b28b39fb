package forgetest

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Install installs an App in repositories, and returns the installation's number.
func (f *Hub) Install(app string, key *rsa.PublicKey, repositories ...string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := &installation{id: f.next() + 1000, app: app, key: key, repos: repositories}
	f.apps[i.id] = i
	for _, name := range repositories {
		f.repos[strings.ToLower(name)].roles[AppBot] = "write"
	}
	return i.id
}

// Suspend suspends an installation, or lets it in again.
func (f *Hub) Suspend(installation int64, suspended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apps[installation].suspended = suspended
}

// Revoke ends all tokens of installations before their time.
func (f *Hub) Revoke() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.tokens)
}

// appOf returns the App that signed a JWT; empty if it is none of ours, or its time is not now.
func (f *Hub) appOf(token string) string {
	parts := strings.Split(token, ".")
	dec := base64.RawURLEncoding.DecodeString
	head, err1 := dec(parts[0])
	body, err2 := dec(parts[1])
	signature, err3 := dec(parts[2])
	var h struct{ Alg string }
	var c struct {
		Iat, Exp int64
		Iss      string
	}
	if err1 != nil || err2 != nil || err3 != nil || json.Unmarshal(head, &h) != nil || json.Unmarshal(body, &c) != nil || h.Alg != "RS256" {
		return ""
	}
	now := time.Now()
	if now.Unix() < c.Iat || now.Unix() >= c.Exp || c.Exp-c.Iat > int64(10*time.Minute/time.Second) {
		return ""
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	for _, i := range f.apps {
		if i.app == c.Iss && rsa.VerifyPKCS1v15(i.key, crypto.SHA256, digest[:], signature) == nil {
			return i.app
		}
	}
	return ""
}

// badJWT is GitHub's word for a JWT that it does not take.
const badJWT = "A JSON web token could not be decoded"

// showApp returns the App itself.
func (f hubIssues) showApp(q *request) (int, any) {
	if q.user == "" {
		return says(http.StatusUnauthorized, badJWT)
	}
	slug, _, _ := strings.Cut(AppBot, "[")
	return http.StatusOK, object{"id": 7, "slug": slug, "name": slug}
}

// makeToken makes a token of an installation, which is good for an hour.
func (f hubIssues) makeToken(q *request) (int, any) {
	i := f.apps[q.number("id")]
	switch {
	case q.user == "":
		return says(http.StatusUnauthorized, badJWT)
	case i == nil || i.app != q.user:
		return says(http.StatusNotFound, "Not Found")
	case i.suspended:
		return says(http.StatusForbidden, "This installation has been suspended")
	}
	token, end := fmt.Sprintf("ghs_%d", f.next()), f.now.Add(time.Hour)
	f.tokens[token] = &installed{installation: i, end: end}
	return http.StatusCreated, object{"token": token, "expires_at": end}
}

// showInstallation returns that of a repository.
func (f hubIssues) showInstallation(q *request) (int, any) {
	for _, i := range f.apps {
		if i.app == q.user && slices.ContainsFunc(i.repos, f.isNow(q.repo.name)) {
			return http.StatusOK, object{"id": i.id}
		}
	}
	return says(http.StatusNotFound, "Not Found")
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

// RenameUser gives a user another name, and the former one to a new user.
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
					to(&v.by)
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
