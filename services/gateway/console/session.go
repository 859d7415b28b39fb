package console

import (
	"net/http"

	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// cookieName has the prefix by which a browser takes the cookie of this very origin only:
// not that of a neighbour under the same domain.
const cookieName = "__Host-pfl-forge-session"

// session returns the token of the session that a request has. Without one the error is
// session.ErrNone.
func (c *Console) session(r *http.Request) (*tokens.Token, error) {
	list := r.CookiesNamed(c.cookie())
	if len(list) == 0 {
		return nil, session.ErrNone
	}
	if len(list) > 1 { // only something between browser and gateway adds one
		return nil, session.ErrForeign
	}
	return c.sessions.Open(list[0].Value)
}

// setSession gives a browser a session; an empty one takes it away. Browsers send it to this origin
// only, never to scripts, and not with the posts of other sites.
func (c *Console) setSession(w http.ResponseWriter, value string) {
	made := &http.Cookie{ //nolint:gosec // Secure, except where the person's own machine serves them by HTTP
		Name: c.cookie(), Value: value, Path: "/", Secure: c.cfg.Own == nil, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		MaxAge: int(session.Time.Seconds()),
	}
	if value == "" {
		made.MaxAge = -1
	}
	http.SetCookie(w, made)
}
