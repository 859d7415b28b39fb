package console

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/console/wording"
)

// maxSecret bounds a token, and maxNext an address to go on to, in bytes.
const maxSecret, maxNext = 200, 2000

// entry is the page to sign in.
type entry struct {
	// Next is where to go on.
	Next string
	// Why the session has ended; empty if there was none.
	Why string
	// Wrong says why the token was not taken.
	Wrong string
	// Lost says that something was sent that was not done.
	Lost bool
}

// signInPage shows the form.
func (v *visit) signInPage() error {
	if v.token != nil {
		http.Redirect(v.w, v.r, within(v.r.URL.Query().Get("next")), http.StatusSeeOther)
		return nil
	}
	_, why := v.console.session(v.r)
	return v.show(http.StatusOK, "signin", "Sign in", entry{Next: within(v.r.URL.Query().Get("next")), Why: why.Error()})
}

// toSignIn answers a request without a session with the form, in place of what was asked for.
func (v *visit) toSignIn(why error) {
	v.token = nil
	page := entry{Next: Base, Why: why.Error(), Lost: v.r.Method != http.MethodGet}
	if v.r.Method == http.MethodGet {
		page.Next = within(v.r.URL.RequestURI())
	}
	if !errors.Is(why, errNoSession) && !errors.Is(why, errForeign) { // one of another gateway may be good there
		v.console.setSession(v.w, "")
	}
	if err := v.show(http.StatusUnauthorized, "signin", "Sign in", page); err != nil {
		v.console.cfg.Log.ErrorContext(v.r.Context(), "a page cannot be made", "error", err)
	}
}

// signIn begins the session of a token.
func (v *visit) signIn() error {
	if v.console.cfg.Own != nil {
		return &signedOut{errNoSession}
	}
	secret, next := strings.TrimSpace(v.r.PostForm.Get("token")), within(v.r.PostForm.Get("next"))
	wrong, why := "Paste a token, which begins with pflt_.", "it is no token"
	if secret != "" && len(secret) <= maxSecret {
		t, err := v.console.cfg.Tokens.Find(secret)
		name, person := "", false
		if err == nil {
			name, person = t.Holder()
		}
		switch {
		case err != nil:
			wrong, why = sentence(err.Error()), err.Error()
		case !person:
			wrong, why = "This is the token of a system. The console is for people; a system uses the API.", "it is the token of the system "+name
		default:
			v.console.cfg.Log.InfoContext(v.r.Context(), "signed in", "token", t.Name, "holder", name)
			v.console.setSession(v.w, v.console.sessions.seal(t))
			http.Redirect(v.w, v.r, next, http.StatusSeeOther)
			return nil
		}
	}
	v.token = nil
	// The token comes first: whoever has one that counts is not kept out by others who fail at the same address.
	if wait := v.console.tries.Failed(v.r.RemoteAddr); wait > 0 {
		seconds := int(math.Ceil(wait.Seconds()))
		v.w.Header().Set("Retry-After", strconv.Itoa(seconds))
		return v.show(http.StatusTooManyRequests, "signin", "Sign in", entry{Next: next, Wrong: fmt.Sprintf(
			"Signing in failed too often from here. Try again in %s. A token that counts is taken at once.", wording.Plural(seconds, "second"),
		)})
	}
	// What was typed is not in the line: it may be a token with a letter too many.
	v.console.cfg.Log.WarnContext(v.r.Context(), "signing in failed", "address", v.r.RemoteAddr, "reason", why)
	return v.show(http.StatusUnauthorized, "signin", "Sign in", entry{Next: next, Wrong: wrong})
}

// signOut has the browser forget its session.
func (v *visit) signOut() error {
	v.console.setSession(v.w, "")
	http.Redirect(v.w, v.r, Base+"sign-in", http.StatusSeeOther)
	return nil
}

// within returns an address of the console, as it may stand in a redirect: whatever else is
// given leads to the beginning.
func within(next string) string {
	u, err := url.Parse(next)
	if err != nil || len(next) > maxNext || u.Scheme != "" || u.Host != "" || u.User != nil || !strings.HasPrefix(u.Path, Base) ||
		path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") || strings.ContainsFunc(u.Path, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }) ||
		u.Path == Base+"sign-in" {
		return Base
	}
	return (&url.URL{Path: u.Path, RawQuery: u.Query().Encode()}).String()
}
