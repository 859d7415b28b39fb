package github_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
)

// appOn returns a client as an App, with a GitHub that answers the request for a token.
func appOn(t *testing.T, at *clock, token http.HandlerFunc) *github.Client {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v3/app/installations/7/access_tokens", token)
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}/installation", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id": 7}`) })
	mux.HandleFunc("GET /api/v3/repos/{owner}/{name}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id": 1, "full_name": "root1/web"}`) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return newClient(t, github.Config{URL: srv.URL, App: &github.App{ID: "Iv1", Installation: 7, KeyFile: keyFile(t)}, Now: at.Now})
}

// TestTokenWithoutAnEnd: where the end of a token is not told, or is past by our clock,
// it is kept for a minute: another one for each request would use up what GitHub allows.
func TestTokenWithoutAnEnd(t *testing.T) {
	in := func(d time.Duration) string { return newClock().Now().Add(d).Format(time.RFC3339) }
	for name, end := range map[string]string{"missing": "", "past": in(-time.Hour), "soon": in(time.Minute)} {
		t.Run(name, func(t *testing.T) {
			at, made := newClock(), atomic.Int32{}
			c := appOn(t, at, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				text := fmt.Sprintf(`{"token": "ghs_%d", "expires_at": %q}`, made.Add(1), end)
				fmt.Fprint(w, strings.Replace(text, `, "expires_at": ""`, "", 1))
			})
			for _, want := range []int32{1, 2} {
				for range 3 {
					if _, err := c.Repository(wait.Context(t), "root1/web"); err != nil {
						t.Fatal(err)
					}
				}
				if n := made.Load(); n != want {
					t.Errorf("%d tokens were made, and not %d", n, want)
				}
				at.move(61 * time.Second)
			}
		})
	}
}

// TestClockOfAnApp: what we say as the App ends within ten minutes also for a
// GitHub whose clock is a minute and more behind ours, and where it does not
// take our word, a person is told to look at the clock.
func TestClockOfAnApp(t *testing.T) {
	at := newClock()
	var claims struct{ Iat, Exp int64 }
	c := appOn(t, at, func(w http.ResponseWriter, r *http.Request) {
		data, err := base64.RawURLEncoding.DecodeString(strings.Split(r.Header.Get("Authorization"), ".")[1])
		if err != nil || json.Unmarshal(data, &claims) != nil {
			t.Errorf("the claims are %q, %v", data, err)
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message": "'Expiration time' claim ('exp') is too far in the future"}`)
	})
	_, err := c.Repository(wait.Context(t), "root1/web")
	if now := at.Now(); claims.Iat != now.Add(-time.Minute).Unix() || claims.Exp != now.Add(8*time.Minute).Unix() {
		t.Errorf("it is from %d to %d at %d", claims.Iat, claims.Exp, now.Unix())
	}
	if err == nil || !strings.Contains(err.Error(), "clock") || !strings.Contains(err.Error(), forges.ErrDenied.Error()) {
		t.Errorf("refused: %v", err)
	}
}
