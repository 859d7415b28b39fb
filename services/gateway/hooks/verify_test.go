package hooks_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// TestGenuineAndForged: of each kind a delivery is stored as it came, with the new
// secret and the old one, and none whose body, secret or signature is another one.
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

// TestPublishedExamples: the examples in the documentation of GitHub, Slack and Standard
// Webhooks fit, so that the signatures are theirs and not our own idea of them.
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

// TestSlackAsksForItsDoor: the question is answered with exactly the challenge,
// as text, and only to who knows the secret.
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
