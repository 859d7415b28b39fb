package console

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/console/login"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/phrase"
	"github.com/pfl-forge/pfl-forge/services/gateway/console/session"
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
	// With is the issuer with whose accounts people sign in, by its name; empty
	// where there is none.
	With string
}

// entrance is a visit of a person who signs in or out.
type entrance struct{ *visit }

// entry returns the page to sign in.
func (v entrance) entry(e entry) entry {
	e.With = v.console.cfg.Login.Name
	return e
}

// signInPage shows the form.
func (v entrance) signInPage() error {
	if v.token != nil {
		http.Redirect(v.w, v.r, within(v.r.URL.Query().Get("next")), http.StatusSeeOther)
		return nil
	}
	_, why := v.console.session(v.r)
	return v.show(http.StatusOK, "signin", "Sign in", v.entry(entry{Next: within(v.r.URL.Query().Get("next")), Why: why.Error()}))
}

// toSignIn answers a request without a session with the form, in place of what was asked for.
func (v entrance) toSignIn(why error) {
	v.token = nil
	page := entry{Next: Base, Why: why.Error(), Lost: v.r.Method != http.MethodGet}
	if v.r.Method == http.MethodGet {
		page.Next = within(v.r.URL.RequestURI())
	}
	if !errors.Is(why, session.ErrNone) && !errors.Is(why, session.ErrForeign) { // one of another gateway may be good there
		v.console.setSession(v.w, "")
	}
	if err := v.show(http.StatusUnauthorized, "signin", "Sign in", v.entry(page)); err != nil {
		v.console.cfg.Log.ErrorContext(v.r.Context(), "a page cannot be made", "error", err)
	}
}

// signIn begins the session of a token.
func (v entrance) signIn() error {
	if v.console.cfg.Own != nil {
		return &signedOut{session.ErrNone}
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
			v.console.setSession(v.w, v.console.sessions.Seal(session.ByToken, t))
			http.Redirect(v.w, v.r, next, http.StatusSeeOther)
			return nil
		}
	}
	return v.notSignedIn(next, wrong, why)
}

// notSignedIn shows the form after a failure, with words for the person and for the log.
func (v entrance) notSignedIn(next, wrong, why string) error {
	v.token = nil
	// The token comes first: whoever has one that counts is not kept out by
	// others who fail at the same address.
	if wait := v.console.tries.Failed(v.r.RemoteAddr); wait > 0 {
		return v.tooOften(next, wait, fmt.Sprintf("Signing in failed too often from here. Try again in %s. A token or a login that counts is taken at once.",
			phrase.Count(seconds(wait), "second")))
	}
	// What was typed is not in the line: it may be a token with a letter too many.
	v.console.cfg.Log.WarnContext(v.r.Context(), "signing in failed", "address", v.r.RemoteAddr, "reason", why)
	return v.show(http.StatusUnauthorized, "signin", "Sign in", v.entry(entry{Next: next, Wrong: wrong}))
}

// tooOften answers a request that can be sent again after a while, with words for the person.
func (v entrance) tooOften(next string, wait time.Duration, words string) error {
	v.w.Header().Set("Retry-After", strconv.Itoa(seconds(wait)))
	return v.show(http.StatusTooManyRequests, "signin", "Sign in", v.entry(entry{Next: next, Wrong: words}))
}

// seconds returns a duration in seconds, at least as long as it.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// logIn leads to the page of the issuer.
func (v entrance) logIn() error {
	issuer, next := v.console.issuer, within(v.r.URL.Query().Get("next"))
	if issuer == nil {
		return &refusal{http.StatusNotFound, "People sign in with a token here."}
	}
	if v.token != nil {
		http.Redirect(v.w, v.r, next, http.StatusSeeOther)
		return nil
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), askTime)
	defer cancel()
	address, cookie, err := issuer.Begin(ctx, next)
	if err != nil {
		return v.notSignedIn(next, v.console.cfg.Login.Name+" cannot be asked now. Try again, or sign in with a token.", err.Error())
	}
	v.setLogin(cookie, login.Lasts)
	http.Redirect(v.w, v.r, address, http.StatusSeeOther)
	return nil
}

// setLogin gives a browser the cookie of a login under way.
func (v entrance) setLogin(value string, lasts time.Duration) {
	http.SetCookie(v.w, &http.Cookie{
		Name: login.Cookie, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(lasts.Seconds()),
	})
}

// loggedIn begins the session of who comes back from the page of the issuer. A login
// ends once, well or not. The issuer is asked only for a browser that began one; how
// often that may be is bounded where it is asked, for all addresses together.
func (v entrance) loggedIn() error {
	issuer := v.console.issuer
	if issuer == nil {
		return &refusal{http.StatusNotFound, "People sign in with a token here."}
	}
	list := v.r.CookiesNamed(login.Cookie)
	if len(list) != 1 {
		v.setLogin("", -time.Second)
		return v.notSignedIn(Base, sentence(login.ErrOther.Error()), "no login was begun in the browser")
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), askTime)
	defer cancel()
	person, next, err := issuer.End(ctx, list[0].Value, v.r.URL.Query())
	if errors.Is(err, login.ErrOften) { // by others, as it may be: the login goes on
		return v.tooOften(next, login.Again, fmt.Sprintf("%s is asked too often now. Load this page again in %s.",
			v.console.cfg.Login.Name, phrase.Count(seconds(login.Again), "second")))
	}
	v.setLogin("", -time.Second)
	if errors.Is(err, login.ErrOther) {
		return v.notSignedIn(Base, sentence(err.Error()), err.Error())
	}
	if err != nil {
		return v.notSignedIn(next, v.console.cfg.Login.Name+" did not let you in: "+err.Error()+".", err.Error())
	}
	t, err := v.console.cfg.Tokens.ByLogin(person)
	if err != nil {
		return v.notSignedIn(next, fmt.Sprintf("You are %q at %s. %s", person, v.console.cfg.Login.Name, sentence(err.Error())), err.Error())
	}
	name, _ := t.Holder()
	v.console.cfg.Log.InfoContext(v.r.Context(), "signed in", "token", t.Name, "holder", name, "login", person)
	v.console.setSession(v.w, v.console.sessions.Seal(session.ByLogin, t))
	http.Redirect(v.w, v.r, next, http.StatusSeeOther)
	return nil
}

// signOut has the browser forget its session.
func (v entrance) signOut() error {
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
