package hooks_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

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
