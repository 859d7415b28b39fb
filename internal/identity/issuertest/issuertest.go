// Package issuertest gives tests a real OpenID Connect issuer in their own process,
// which also signs what no honest one would.
//
// It answers discovery, keys, authorization codes and refreshes over HTTP. Tests of logins
// alter single claims or header fields with Sign and Forge, take the issuer away with Away, or
// hold its answers back. A token that differs from an honest one in any way must be refused.
package issuertest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Issuer is an issuer on a loopback port. Its methods may be called while requests are answered.
type Issuer struct {
	// URL is its address.
	URL string

	t      testing.TB
	server *httptest.Server
	mu     sync.Mutex
	key    *rsa.PrivateKey
	kid    string
	away   bool
	hidden bool
	asked  map[string]int
	held   chan struct{}
	told   map[string]any
	// answers are in place of its own, by path.
	answers map[string]http.HandlerFunc
	codes   map[string]login
	// refreshes are the logins that can be refreshed, by the texts that were given for it.
	refreshes map[string]login
	// Person is the value of the claims of whoever logs in on the page.
	Person map[string]any
	// Secret is that of the client, who proves it by one of Methods, as
	// token_endpoint_auth_methods_supported has them; empty: the client has none.
	Secret  string
	Methods []string
}

// login is one on the page: the query that the page was opened with, which the exchange of its
// code has to fit, and the claims of the person.
type login struct {
	asked  url.Values
	person map[string]any
}

// Start returns an issuer that lives as long as the test.
func Start(t testing.TB) *Issuer {
	t.Helper()
	i := unstarted(t)
	i.server.Start()
	i.URL = i.server.URL
	return i
}

// StartTLS returns one with a certificate of an authority of its own, and a file with that.
func StartTLS(t testing.TB) (i *Issuer, ca string) {
	t.Helper()
	i = unstarted(t)
	i.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not know it
	i.server.StartTLS()
	i.URL = i.server.URL
	ca = filepath.Join(t.TempDir(), "issuer.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return i, ca
}

// Client returns a client that knows the issuer's certificate.
func (i *Issuer) Client() *http.Client { return i.server.Client() }

// unstarted returns an issuer that does not listen yet.
func unstarted(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{
		t: t, answers: map[string]http.HandlerFunc{}, codes: map[string]login{}, refreshes: map[string]login{}, asked: map[string]int{},
	}
	i.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+About, func(w http.ResponseWriter, _ *http.Request) {
		told := map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + Keys, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + Token,
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"},
		}
		if i.Methods != nil {
			told["token_endpoint_auth_methods_supported"] = i.Methods
		}
		i.mu.Lock()
		maps.Copy(told, i.told)
		i.mu.Unlock()
		i.write(w, told)
	})
	mux.HandleFunc("GET "+Keys, func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		public, kid, hidden := i.key.PublicKey, i.kid, i.hidden
		i.mu.Unlock()
		if hidden {
			http.Error(w, "hidden", http.StatusServiceUnavailable)
			return
		}
		i.write(w, map[string]any{"keys": []map[string]any{{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": kid, "n": encode(public.N.Bytes()), "e": encode(big.NewInt(int64(public.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST "+Token, i.token)
	i.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.asked[r.URL.Path]++
		held, answer := i.held, i.answers[r.URL.Path]
		i.mu.Unlock()
		if held != nil {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		if answer != nil {
			answer(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.server.Close)
	return i
}

// write answers with a document, or with an error of the server while the issuer is away.
func (i *Issuer) write(w http.ResponseWriter, v any) {
	i.mu.Lock()
	away := i.away
	i.mu.Unlock()
	if away {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // of strings and numbers
}

// authorize is the page: whoever opens it is logged in at once, as Person, and led back with a
// code.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	code := rand.Text()
	i.mu.Lock()
	i.codes[code] = login{q, maps.Clone(i.Person)}
	i.mu.Unlock()
	answer := url.Values{"code": {code}, "state": {q.Get("state")}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound) //nolint:gosec // a test leads where it wants
}

// proven reports whether a client has proven who it is, in one of the ways that the issuer takes.
// Without a Secret there is nothing to prove: the client is a public one.
func (i *Issuer) proven(r *http.Request) bool {
	if i.Secret == "" {
		return r.FormValue("client_id") != "" && r.Header.Get("Authorization") == ""
	}
	methods := i.Methods
	if methods == nil {
		methods = []string{"client_secret_basic"}
	}
	_, basic, _ := r.BasicAuth()
	return basic == i.Secret && slices.Contains(methods, "client_secret_basic") ||
		r.PostFormValue("client_secret") == i.Secret && slices.Contains(methods, "client_secret_post")
}

// refuse answers with an error of OAuth 2.0 (RFC 6749, 5.2).
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error": %q}`, code)
}

// token exchanges a code for a token, once, and for who has the verifier of the challenge that the
// page was opened with (RFC 7636).
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	if !i.proven(r) {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	if r.FormValue("grant_type") == "refresh_token" {
		i.refresh(w, r.FormValue("refresh_token"))
		return
	}
	i.mu.Lock()
	l, known := i.codes[r.FormValue("code")]
	delete(i.codes, r.FormValue("code"))
	i.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !known || l.asked.Get("code_challenge") != encode(sum[:]) {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	i.grant(w, l)
}

// grant answers with a token for a login, and with a new text to refresh it.
// There is no nonce if the client has given none.
func (i *Issuer) grant(w http.ResponseWriter, l login) {
	claims := map[string]any{"aud": l.asked.Get("client_id")}
	if n := l.asked.Get("nonce"); n != "" {
		claims["nonce"] = n
	}
	maps.Copy(claims, l.person)
	refresh := rand.Text()
	i.mu.Lock()
	i.refreshes[refresh] = l
	i.mu.Unlock()
	i.write(w, map[string]any{"access_token": "none", "token_type": "Bearer", "id_token": i.Sign(claims), "refresh_token": refresh})
}

// Refreshable returns a text by which a client refreshes a login of Person, once.
func (i *Issuer) Refreshable(client string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	text := rand.Text()
	i.refreshes[text] = login{asked: url.Values{"client_id": {client}}}
	return text
}

// refresh grants a new token for a login, once for each text that was given for
// it: the same text again ends the login.
func (i *Issuer) refresh(w http.ResponseWriter, text string) {
	i.mu.Lock()
	l, known := i.refreshes[text]
	delete(i.refreshes, text)
	l.person = maps.Clone(i.Person)
	i.mu.Unlock()
	if !known {
		refuse(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	i.grant(w, l)
}

// Rotate replaces the issuer's key.
func (i *Issuer) Rotate() {
	i.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.key, i.kid = key, rand.Text()
}

// Away has the issuer answer nothing, or answer again.
func (i *Issuer) Away(away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away = away
}

// Tell has the issuer describe itself with these fields in place of its own.
func (i *Issuer) Tell(fields map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.told = fields
}

// Answer has a path of the issuer answered in another way; nil: in its own.
func (i *Issuer) Answer(path string, answer http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers[path] = answer
}

// HideKeys has the issuer show no keys, and everything else, or show them again.
func (i *Issuer) HideKeys(hidden bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.hidden = hidden
}

// Hold has the issuer answer nothing before release is called.
func (i *Issuer) Hold() (release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	held := make(chan struct{})
	i.held = held
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.held = nil
		close(held)
	}
}

// The paths of an issuer.
const (
	// About is where it tells of itself.
	About = "/.well-known/openid-configuration"
	// Keys are its keys.
	Keys = "/keys"
	// Token takes codes.
	Token = "/token"
)

// Asked returns how often a path of it was asked for.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}
