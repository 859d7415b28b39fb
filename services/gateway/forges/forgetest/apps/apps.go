// Package apps has the Apps of a forge for tests, by which GitHub lets programs in: their
// installations, and the tokens that those make.
//
// Package forgetest answers GitHub's API of Apps with it. Like GitHub it takes a JWT
// only if the App's key signed it for this moment, and a token only until its end.
package apps

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Installation is an App in some repositories.
type Installation struct {
	ID int64
	// App is the id of the App, and Key verifies the JWTs by which it says who it is.
	App string
	Key *rsa.PublicKey
	// Repos are the names of the repositories at the time of the installation.
	Repos []string
	// Suspended is set while an owner has shut it out.
	Suspended bool
	// Permissions are those that it was given; nil for all that a gateway asks for.
	Permissions map[string]string
}

// Installed is a token of an installation.
type Installed struct {
	*Installation

	// End is when it is not taken any more, by the clock of the forge.
	End time.Time
}

// Apps has installations by their number, and the tokens that were made for them, with their ends.
type Apps struct {
	Installations map[int64]*Installation
	Tokens        map[string]*Installed
}

// New returns Apps without any.
func New() Apps {
	return Apps{Installations: map[int64]*Installation{}, Tokens: map[string]*Installed{}}
}

// Of returns the App that signed a JWT; empty if it is none of ours, or its
// time is not now. The text has the two dots of a JWT; the times are compared
// with the clock of this machine, which signed it.
func (a *Apps) Of(token string) string {
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
	for _, i := range a.Installations {
		if i.App == c.Iss && rsa.VerifyPKCS1v15(i.Key, crypto.SHA256, digest[:], signature) == nil {
			return i.App
		}
	}
	return ""
}

// Unknown is the answer to a JWT that is not taken.
func (a *Apps) Unknown() (status int, out map[string]any) {
	return says(http.StatusUnauthorized, "A JSON web token could not be decoded")
}

// Make makes a token for an installation of an App, and returns the answer with it.
func (a *Apps) Make(app string, id int64, token string, end time.Time) (status int, out any) {
	i := a.Installations[id]
	switch {
	case app == "":
		return a.Unknown()
	case i == nil || i.App != app:
		return says(http.StatusNotFound, "Not Found")
	case i.Suspended:
		return says(http.StatusForbidden, "This installation has been suspended")
	}
	a.Tokens[token] = &Installed{Installation: i, End: end}
	return http.StatusCreated, map[string]any{"token": token, "expires_at": end}
}

// Find returns the answer with the installation of an App in a repository,
// which is one of its names if is says so.
func (a *Apps) Find(app string, is func(name string) bool) (status int, out any) {
	if app == "" {
		return a.Unknown()
	}
	for _, i := range a.Installations {
		if i.App == app && slices.ContainsFunc(i.Repos, is) {
			return http.StatusOK, i.shown()
		}
	}
	return says(http.StatusNotFound, "Not Found")
}

// shown returns an installation in an organisation, as GitHub does.
func (i *Installation) shown() map[string]any {
	out := map[string]any{"id": i.ID, "account": map[string]any{"type": "Organization"}, "suspended_at": nil, "permissions": i.Permissions}
	if i.Permissions == nil {
		out["permissions"] = map[string]string{
			"metadata": "read", "issues": "write", "pull_requests": "write", "statuses": "write", "checks": "read", "contents": "write", "members": "read",
		}
	}
	if i.Suspended {
		out["suspended_at"] = "2026-11-30T00:00:00Z"
	}
	return out
}

// says answers with a reason.
func says(status int, reason string) (code int, out map[string]any) {
	return status, map[string]any{"message": reason}
}
