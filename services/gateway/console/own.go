package console

import (
	"net/http"
	"strconv"

	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Own are the settings of the console of one person on their own machine. The program
// that serves it begins their session, with Enter; the book is that of tokens.Own.
type Own struct {
	// Port is where it listens. Cookies are the same for all ports of a host, so their name has it:
	// two consoles in one browser do not take each other's.
	Port int
	// Running says that a run goes on, which pages tell.
	Running bool
	// Events, if not nil, answers a page that waits for changes, in place of the API.
	Events func(http.ResponseWriter, *http.Request) error
}

// cookie returns the name of the cookie. The prefix __Host- wants Secure, which not every browser
// takes without HTTPS, not even from its own machine.
func (c *Console) cookie() string {
	if c.cfg.Own == nil {
		return cookieName
	}
	return "pfl-forge-session-" + strconv.Itoa(c.cfg.Own.Port)
}

// SignedIn reports whether a request has a session that counts.
func (c *Console) SignedIn(r *http.Request) bool {
	_, err := c.session(r)
	return err == nil
}

// Enter begins a session of the person, for whoever has made sure of them, and leads to the first
// page.
func (c *Console) Enter(w http.ResponseWriter, r *http.Request) {
	c.secure(w.Header())
	t, err := c.cfg.Tokens.Named(tokens.OwnEntry)
	if err != nil {
		c.refuse(w, r, nil, http.StatusForbidden, "This console is not a person's own.")
		return
	}
	c.setSession(w, c.sessions.Seal(session.ByToken, t))
	http.Redirect(w, r, Base, http.StatusSeeOther)
}

// Refuse answers with a page that says why there is nothing else.
func (c *Console) Refuse(w http.ResponseWriter, r *http.Request, status int, words string) {
	c.secure(w.Header())
	c.refuse(w, r, nil, status, words)
}
