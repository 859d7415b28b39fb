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

// taken returns the answer to a delivery of a kind that is stored: Slack shows people an error for any other than this.
func taken(k hooks.Kind) int {
	if k == hooks.Slack {
		return http.StatusOK
	}
	return http.StatusAccepted
}

// TestGenuineAndForged: of each kind a delivery is stored as it came, with the new secret and the old one, and none whose body, secret
// or signature is another one.
func TestGenuineAndForged(t *testing.T) {
	for k, want := range map[hooks.Kind]deliveries.Delivery{
		hooks.GitHub:      {ID: "72d3162e", Event: "issues"},
		hooks.Gitea:       {ID: "72d3162e", Event: "issue_label"},
		hooks.GitLab:      {ID: "72d3162e", Event: "Issue Hook"},
		hooks.Slack:       {ID: "72d3162e", Event: "event_callback"},
		hooks.Standard:    {ID: "72d3162e", Event: "webhook"},
		hooks.CloudEvents: {Event: "t"},
	} {
		t.Run(string(k), func(t *testing.T) {
			var s stored
			mux, path := door(t, &s, newSecret, oldSecret), "/hooks/"+string(k)
			body := body
			if k == hooks.Slack {
				body = strings.Replace(body, `"t"`, `"event_callback"`, 1)
			}
			for _, secret := range []string{newSecret, oldSecret} {
				if got := post(mux, path, body, signed(k, secret, body, now)); got != taken(k) {
					t.Errorf("a genuine delivery is answered with %d", got)
				}
			}
			if len(s.list) != 2 {
				t.Fatalf("stored %+v", s.list)
			}
			got := s.list[0]
			if got.Hook != string(k) || want.ID != "" && got.ID != want.ID || got.Event != want.Event || string(got.Body) != body {
				t.Errorf("stored %+v", got)
			}
			s.list = nil
			forged := map[string]http.Header{
				"another secret": signed(k, "something-else-entirely", body, now),
				"no secret":      signed(k, "", body, now),
				"no header":      {},
			}
			for name := range signed(k, newSecret, body, now) {
				if !strings.Contains(name, "Event") && !strings.Contains(name, "Delivery") && !strings.Contains(name, "Type") && !strings.Contains(name, "Idem") {
					forged["two of "+name] = signed(k, newSecret, body, now)
					forged["two of "+name].Add(name, forged["two of "+name].Get(name))
					forged["without "+name] = signed(k, newSecret, body, now)
					forged["without "+name].Del(name)
				}
			}
			if k != hooks.GitLab && k != hooks.CloudEvents {
				forged["another body"] = signed(k, newSecret, body+" ", now)
			}
			if k == hooks.Slack || k == hooks.Standard {
				forged["six minutes ago"] = signed(k, newSecret, body, now.Add(-6*time.Minute))
				forged["in six minutes"] = signed(k, newSecret, body, now.Add(6*time.Minute))
			}
			for what, header := range forged {
				if got := post(mux, path, body, header); got != http.StatusUnauthorized {
					t.Errorf("%s: answered with %d", what, got)
				}
			}
			if len(s.list) > 0 {
				t.Errorf("stored %+v", s.list)
			}
		})
	}
}

// TestPublishedExamples: the examples in the documentation of GitHub, Slack and Standard Webhooks fit, so that the signatures are
// theirs and not our own idea of them.
func TestPublishedExamples(t *testing.T) {
	slackBody := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA" +
		"&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554" +
		"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	for k, c := range map[hooks.Kind]struct {
		secret, body string
		at           int64
		header       http.Header
	}{
		hooks.GitHub: {"It's a Secret to Everybody", "Hello, World!", 0, http.Header{
			"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}, "X-Github-Event": {"issues"},
		}},
		hooks.Slack: {"8f742231b10e8888abcd99yyyzzz85a5", slackBody, 1531420618, http.Header{
			"X-Slack-Request-Timestamp": {"1531420618"}, "Content-Type": {"application/x-www-form-urlencoded"},
			"X-Slack-Signature": {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
		}},
		hooks.Standard: {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`, 1614265330, http.Header{
			"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"},
			"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		}},
	} {
		var s stored
		mux := http.NewServeMux()
		hooks.NewDoor(hooks.Config{
			Hooks: []hooks.Hook{{Name: "x", Kind: k, Secrets: files(t, c.secret), PerMinute: 60}}, Store: s.store,
			Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(c.at, 0) },
		}).Mount(mux)
		if got := post(mux, "/hooks/x", c.body, c.header); got != taken(k) {
			t.Errorf("%s: answered with %d", k, got)
		}
	}
}

func TestCloudEvents(t *testing.T) {
	binary := http.Header{
		"Authorization": {"Bearer " + newSecret}, "Content-Type": {"application/json"},
		"Ce-Specversion": {"1.0"}, "Ce-Id": {"7"}, "Ce-Source": {"c%69"}, "Ce-Type": {"t"},
	}
	var s stored
	mux := door(t, &s, newSecret)
	if post(mux, "/hooks/cloudevents", "{}", binary) != http.StatusAccepted ||
		post(mux, "/hooks/cloudevents", body, signed(hooks.CloudEvents, newSecret, body, now)) != http.StatusAccepted {
		t.Fatal("a CloudEvent is refused")
	}
	if len(s.list) != 2 || s.list[0].ID != s.list[1].ID || s.list[0].Event != "t" {
		t.Errorf("one event in two forms is stored as %+v", s.list)
	}
	for what, change := range map[string]func(http.Header){
		"of version 0.3": func(h http.Header) { h.Set("Ce-Specversion", "0.3") },
		"without id":     func(h http.Header) { h.Del("Ce-Id") },
		"of two sources": func(h http.Header) { h.Add("Ce-Source", "other") },
		"badly encoded":  func(h http.Header) { h.Set("Ce-Id", "%zz") },
		"a batch":        func(h http.Header) { h.Set("Content-Type", "application/cloudevents-batch+json") },
	} {
		header := binary.Clone()
		change(header)
		if got := post(mux, "/hooks/cloudevents", "[]", header); got != http.StatusBadRequest {
			t.Errorf("an event %s is answered with %d", what, got)
		}
	}
}

// TestSlackAsksForItsDoor: the question is answered with exactly the challenge, as text, and only to who knows the secret.
func TestSlackAsksForItsDoor(t *testing.T) {
	var s stored
	mux := door(t, &s, newSecret)
	question := `{"type": "url_verification", "challenge": "<script>"}`
	w := answer(mux, "/hooks/slack", question, signed(hooks.Slack, newSecret, question, now))
	if w.Code != http.StatusOK || w.Body.String() != "<script>" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || len(s.list) > 0 {
		t.Errorf("answered with %d %q %v", w.Code, w.Body, w.Header())
	}
	if got := post(mux, "/hooks/slack", question, signed(hooks.Slack, "something-else-entirely", question, now)); got != http.StatusUnauthorized {
		t.Errorf("a stranger's question is answered with %d", got)
	}
}

// TestAnswers: only what could not be stored is the door's fault, and what nobody looks at is no one's.
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

// TestSecretsAreReplaced: a secret that is put in place while the door is open counts at once, an old one that is gone no longer,
// and with none, or one that anybody could guess, nothing is taken.
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

func TestBadHooks(t *testing.T) {
	good := "hooks: [{name: work, kind: gitea, secrets: [/a]}]"
	if list, err := hooks.Parse("hooks.yaml", []byte(good)); err != nil || len(list) != 1 || list[0].PerMinute != 1200 {
		t.Errorf("%+v, %v", list, err)
	}
	for change, want := range map[[2]string]string{
		{"work", "a/b"}:              "hooks[0].name: ",
		{"gitea", "gogs"}:            `hooks[0].kind: is "gogs"`,
		{"[/a]", "[]"}:               "hooks[0].secrets: has 0 files",
		{"[/a]", "[/a, /b, /c]"}:     "hooks[0].secrets: has 3 files",
		{"[/a]", "[a]"}:              "hooks[0].secrets[0]: has to be an absolute path",
		{"[/a]", "[/a], secret: x"}:  "hooks[0].secret: ",
		{"}]", ", per_minute: -1}]"}: "hooks[0].per_minute: ",
		{"}]", "}, {name: work, kind: gitea, secrets: [/a]}]"}: "hooks[1].name: is there twice",
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if _, err := hooks.Parse("hooks.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzHooks(f *testing.F) {
	f.Add("hooks: [{name: work, kind: gitea, secrets: [/a]}]", "/hooks/gitea", body, "sha256=00")
	var s stored
	mux := door(f, &s, newSecret)
	f.Fuzz(func(t *testing.T, config, name, body, signature string) {
		if list, err := hooks.Parse("f", []byte(config)); err == nil {
			hooks.NewDoor(hooks.Config{Hooks: list})
		}
		for _, k := range []string{"github", "gitea", "gitlab", "slack", "standard", "cloudevents"} {
			h := http.Header{}
			for _, name := range []string{"X-Hub-Signature-256", "X-Gitlab-Token", "X-Slack-Signature", "Webhook-Signature", "Authorization"} {
				h.Set(name, signature)
			}
			h.Set("X-Slack-Request-Timestamp", fmt.Sprint(now.Unix()))
			h.Set("Webhook-Timestamp", fmt.Sprint(now.Unix()))
			h.Set("Webhook-Id", name)
			if got := post(mux, "/hooks/"+k, body, h); got != http.StatusUnauthorized && !strings.Contains(signature, newSecret) {
				t.Errorf("%s takes %q with the signature %q: %d", k, body, signature, got)
			}
		}
	})
}
