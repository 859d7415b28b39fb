package identity_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/identity/issuertest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// TestGrantOrAway: only a refusal in the words of OAuth 2.0 ends a login. After
// whatever else comes, or does not, it is asked for again; and none of it is
// repeated. What refreshes a login is sent to the issuer alone.
func TestGrantOrAway(t *testing.T) {
	t.Parallel()
	var led atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Add(1) }))
	t.Cleanup(thief.Close)
	says := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, text)
		}
	}
	const words = "application/json"
	i := issuertest.Start(t)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		away   bool
	}{
		"broken":                  {says(503, "text/html", "<html>secret"), true},
		"broken, in its words":    {says(500, words, `{"error": "server_error", "error_description": "secret"}`), true},
		"busy":                    {says(429, words, `{"error": "slow_down"}`), true},
		"a page of a proxy":       {says(200, "text/html", "<html>secret"), true},
		"a proxy that refuses":    {says(403, "text/html", "<html>secret"), true},
		"half an answer":          {says(200, words, `{"access_token": "secr`), true},
		"nothing":                 {says(200, words, `{}`), true},
		"a connection that broke": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		}, true},
		"a refusal":              {says(400, words, `{"error": "invalid_grant", "error_description": "secret"}`), false},
		"a refusal as a success": {says(200, words, `{"error": "invalid_grant"}`), false},
		"no ID token":            {says(200, words, `{"access_token": "secret", "token_type": "Bearer"}`), false},
	} {
		i.Answer(issuertest.Token, c.answer)
		_, err := newSite(t, i, time.Now).Refresh(wait.Context(t), identity.Grant{Refresh: "given"})
		if errors.Is(err, identity.ErrAway) != c.away || errors.Is(err, identity.ErrGrant) == c.away {
			t.Errorf("%s: %v", name, err)
		}
		if text := fmt.Sprint(err); strings.Contains(text, "secr") || strings.Contains(text, "given") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if n := led.Load(); n > 0 {
		t.Errorf("another server was sent %d of them", n)
	}
}

// TestCodesOfAnotherIssuer: an issuer that describes itself as another one is none, and a code
// that came in the name of another one is not sent: ours would end the login of the person there.
func TestCodesOfAnotherIssuer(t *testing.T) {
	t.Parallel()
	i, other := issuertest.Start(t), issuertest.Start(t)
	i.Person = map[string]any{"sub": "17"}
	for name, c := range map[string]struct {
		told  map[string]any
		from  string
		wrong bool
	}{
		"another":              {nil, other.URL, true},
		"none, as it may be":   {nil, "", false},
		"itself":               {nil, i.URL, false},
		"none where it is due": {map[string]any{"authorization_response_iss_parameter_supported": true}, "", true},
		"itself, as is due":    {map[string]any{"authorization_response_iss_parameter_supported": true}, i.URL, false},
	} {
		i.Tell(c.told)
		site, a := newSite(t, i, time.Now), identity.NewBearerAttempt()
		page, err := site.Begin(wait.Context(t), a)
		if err != nil {
			t.Fatal(err)
		}
		query, asked := url.Values{"code": {code(t, page)}}, i.Asked(issuertest.Token)
		if c.from != "" {
			query.Set("iss", c.from)
		}
		_, err = site.Token(wait.Context(t), a, query)
		if (err != nil) != c.wrong || (i.Asked(issuertest.Token) > asked) == c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
	i.Answer(issuertest.About, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "\x1b[31m"+strings.Repeat("x", 10_000), http.StatusServiceUnavailable)
	})
	_, err := newSite(t, i, time.Now).Begin(wait.Context(t), identity.NewBearerAttempt())
	if text := fmt.Sprint(err); !errors.Is(err, identity.ErrAway) || len(text) > 500 || strings.Contains(text, "\x1b") {
		t.Errorf("a page in place of a description: %d bytes, %.200q", len(text), text)
	}
	i.Answer(issuertest.About, nil)
	i.Tell(map[string]any{"issuer": other.URL})
	if _, err := newSite(t, i, time.Now).Begin(wait.Context(t), identity.NewBearerAttempt()); err == nil || !strings.Contains(err.Error(), "did not match") {
		t.Errorf("another issuer's description: %v", err)
	}
	if _, err := newBearer(t, i, "", time.Now).Verify(wait.Context(t), i.Sign(nil)); err == nil {
		t.Error("a token of an issuer that describes itself as another one counts")
	}
}

// TestNamesAreWhole: what an issuer calls a person is taken as a whole or not
// at all: cut, or without what is not shown, it would be another's.
func TestNamesAreWhole(t *testing.T) {
	t.Parallel()
	i := issuertest.Start(t)
	b := newBearer(t, i, "", time.Now)
	long := strings.Repeat("a", identity.MaxName-1)
	for _, sub := range []string{long + "1", long + "2", "Zoë Ωmega|17"} {
		if got, err := b.Verify(wait.Context(t), i.Sign(map[string]any{"sub": sub})); err != nil || got.Subject != sub || got.Name != sub {
			t.Errorf("%s: %+v, %v", sub, got, err)
		}
	}
	for sub, reason := range map[string]string{
		long + "12": "at most 255", "a\u200bda": "not shown", "ada\x1b[31m": "not shown", "ada\n": "white space", "ada  l": "white space", "": "no claim sub",
	} {
		if got, err := b.Verify(wait.Context(t), i.Sign(map[string]any{"sub": sub})); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %+v, %v", sub, got, err)
		}
	}
	email := map[string]any{"email": "ada@example.com", "email_verified": true, "sub": nil}
	if got, err := newBearer(t, i, "email", time.Now).Verify(wait.Context(t), i.Sign(email)); err == nil {
		t.Errorf("no sub: %+v", got)
	}
	_, err := identity.NewBearer(identity.SiteConfig{Issuer: "https://" + strings.Repeat("i", 150), Client: "pfl-forge", Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "issuer: has 158 bytes") {
		t.Errorf("an issuer that does not fit into the journal: %v", err)
	}
}
