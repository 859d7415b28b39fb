package hooks_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

const (
	newSecret = "correct-horse-battery"
	oldSecret = "staple-of-former-times"
)

// now is the time of the door's clock.
var now = time.Unix(1_700_000_000, 0)

// stored collects what a door stores.
type stored struct {
	mu   sync.Mutex
	list []deliveries.Delivery
	err  error
}

func (s *stored) store(_ context.Context, d deliveries.Delivery) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.list = append(s.list, d)
	}
	return false, s.err
}

// files writes secrets into files and returns their paths.
func files(t testing.TB, secrets ...string) []string {
	t.Helper()
	var paths []string
	for i, s := range secrets {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(path, []byte(s+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// door returns a mux with a hook of each kind, named as the kind.
func door(t testing.TB, s *stored, secrets ...string) *http.ServeMux {
	t.Helper()
	paths := files(t, secrets...)
	var list []hooks.Hook
	for _, k := range []hooks.Kind{hooks.GitHub, hooks.Gitea, hooks.GitLab, hooks.Slack, hooks.Standard, hooks.CloudEvents} {
		list = append(list, hooks.Hook{Name: string(k), Kind: k, Secrets: paths, PerMinute: 600})
	}
	mux := http.NewServeMux()
	hooks.NewDoor(hooks.Config{Hooks: list, Store: s.store, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}).Mount(mux)
	return mux
}

// sign returns the HMAC of a text.
func sign(secret, text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// signed returns the headers of a genuine delivery of a kind, made at a time.
func signed(k hooks.Kind, secret, body string, at time.Time) http.Header {
	h := http.Header{}
	stamp := fmt.Sprint(at.Unix())
	switch k {
	case hooks.GitHub, hooks.Gitea:
		h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sign(secret, body)))
		h.Set("X-Github-Event", "issues")
		h.Set("X-Github-Delivery", "72d3162e")
		if k == hooks.Gitea {
			h.Set("X-Gitea-Event-Type", "issue_label")
			h.Set("X-Gitea-Delivery", "72d3162e")
		}
	case hooks.GitLab:
		h.Set("X-Gitlab-Token", secret)
		h.Set("X-Gitlab-Event", "Issue Hook")
		h.Set("Idempotency-Key", "72d3162e")
	case hooks.Slack:
		h.Set("X-Slack-Request-Timestamp", stamp)
		h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(sign(secret, "v0:"+stamp+":"+body)))
	case hooks.Standard:
		h.Set("Webhook-Id", "72d3162e")
		h.Set("Webhook-Timestamp", stamp)
		h.Set("Webhook-Signature", "v1a,eA== v1,"+base64.StdEncoding.EncodeToString(sign(secret, "72d3162e."+stamp+"."+body)))
	case hooks.CloudEvents:
		h.Set("Authorization", "Bearer "+secret)
		h.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	}
	return h
}

// body is one that all kinds can read.
const body = `{"specversion": "1.0", "id": "7", "source": "ci", "type": "t", "event_id": "72d3162e", "event": "x"}`

// post sends a delivery and returns the status.
func post(h http.Handler, path, body string, header http.Header) int {
	return answer(h, path, body, header).Code
}

func answer(h http.Handler, path, body string, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header = header.Clone()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// taken returns the answer to a delivery of a kind that is stored: Slack shows
// people an error for any other than this.
func taken(k hooks.Kind) int {
	if k == hooks.Slack {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// TestAnswers: only what could not be stored is the door's fault, and what
// nobody looks at is no one's.
func TestAnswers(t *testing.T) {
	var s stored
	mux := door(t, &s, newSecret)
	genuine := signed(hooks.GitHub, newSecret, body, now)
	with := func(name, value string) http.Header {
		h := genuine.Clone()
		h.Set(name, value)
		return h
	}
	for what, c := range map[string]struct {
		path   string
		header http.Header
		want   int
	}{
		"an event that nobody wants": {"/hooks/github", with("X-Github-Event", "push"), http.StatusNoContent},
		"a form":                     {"/hooks/github", with("Content-Type", "application/x-www-form-urlencoded"), http.StatusBadRequest},
		"another hook":               {"/hooks/other", genuine, http.StatusNotFound},
		"no hook":                    {"/hooks/", genuine, http.StatusNotFound},
		"a path above":               {"/hooks/..%2fgithub", genuine, http.StatusNotFound},
		"an encoded name":            {"/hooks/github%00", genuine, http.StatusNotFound},
		"a deeper path":              {"/hooks/github/x", genuine, http.StatusNotFound},
		"another letter case":        {"/hooks/GitHub", genuine, http.StatusNotFound},
	} {
		if got := post(mux, c.path, body, c.header); got != c.want {
			t.Errorf("%s: answered with %d, want %d", what, got, c.want)
		}
	}
	if len(s.list) > 0 {
		t.Errorf("stored %+v", s.list)
	}
	s.err = errors.New("no stream")
	if got := post(mux, "/hooks/github", body, genuine); got != http.StatusServiceUnavailable {
		t.Errorf("what cannot be stored is answered with %d", got)
	}
	r := httptest.NewRequest(http.MethodGet, "/hooks/github", nil)
	w := httptest.NewRecorder()
	if mux.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET is answered with %d", w.Code)
	}
}

// TestSecretsAreReplaced: a secret that is put in place while the door is open counts at once, an
// old one that is gone no longer, and with none, or one that anybody could guess, nothing is taken.
func TestSecretsAreReplaced(t *testing.T) {
	var s stored
	paths := files(t, newSecret, oldSecret)
	mux := http.NewServeMux()
	hooks.NewDoor(hooks.Config{
		Hooks: []hooks.Hook{{Name: "x", Kind: hooks.GitLab, Secrets: paths, PerMinute: 600}}, Store: s.store, Log: slog.New(slog.DiscardHandler),
	}).Mount(mux)
	status := func(secret string) int { return post(mux, "/hooks/x", "{}", signed(hooks.GitLab, secret, "", now)) }
	if err := os.WriteFile(paths[0], []byte("the-newest-secret-of-all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	if a, b, c := status("the-newest-secret-of-all"), status(newSecret), status(oldSecret); a != 202 || b != 401 || c != 401 {
		t.Errorf("the new secret is answered with %d, those before with %d and %d", a, b, c)
	}
	for _, short := range []string{"", "\n", "short"} {
		if err := os.WriteFile(paths[0], []byte(short), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := status(strings.TrimSpace(short)); got != http.StatusServiceUnavailable {
			t.Errorf("with the secret %q a delivery is answered with %d", short, got)
		}
	}
}

func TestRate(t *testing.T) {
	var s stored
	mux := door(t, &s, newSecret)
	header := signed(hooks.GitLab, newSecret, "", now)
	taken := 0
	for range 200 {
		if post(mux, "/hooks/gitlab", "{}", header) == http.StatusAccepted {
			taken++
		}
	}
	w := answer(mux, "/hooks/gitlab", "{}", header)
	if taken != 100 || w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("of 600 a minute, %d are taken at once; then %d %v", taken, w.Code, w.Header())
	}
	// Those of others do not use up the rate of the genuine ones.
	for range 200 {
		post(mux, "/hooks/github", body, http.Header{})
	}
	if got := post(mux, "/hooks/github", body, signed(hooks.GitHub, newSecret, body, now)); got != http.StatusAccepted {
		t.Errorf("after 200 forged deliveries a genuine one is answered with %d", got)
	}
}
