package gateway

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// TestSettings reads a file, with paths from its folder, and refuses what makes no sense.
func TestSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	read := func(text string) (*Settings, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSettings(path)
	}
	s, err := read("listen: 0.0.0.0:8443\ntls: {cert: tls.crt, key: /etc/tls.key}\ntokens: tokens.yaml\nper_second: 2.5\nfollowers: 10\n" +
		"console: {key: console.key, projects: [shop]}\n")
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Dir(path)
	if diff := cmp.Diff(&Settings{
		Listen: "0.0.0.0:8443", TLS: TLS{filepath.Join(in, "tls.crt"), "/etc/tls.key"}, Tokens: filepath.Join(in, "tokens.yaml"), PerSecond: 2.5, Followers: 10,
		Console: Console{Key: filepath.Join(in, "console.key"), Projects: []string{"shop"}},
	}, s); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if s, err := read(""); err != nil || s.Listen != "127.0.0.1:8080" {
		t.Errorf("without settings: %+v, %v", s, err)
	}
	for text, want := range map[string]string{
		"listen: nowhere":   "listen: is no address",
		"tls: {cert: a}":    "tls: give cert and key",
		"console: {key: k}": "console: wants tokens",
		"chats: chats.yaml": "chats: wants tokens",
		"console: {trace_url: 'javascript:alert({trace_id})'}": "console.trace_url",
		"console: {key: k, projects: [a/b]}\ntokens: t":        "console.projects",
		"console: {projects: [shop]}":                          "has no key",
		"burst: -1":                                            "cannot be negative",
		"token: tokens.yaml":                                   "tokens",
		"per_second: quickly":                                  "per_second",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestLoginSettings reads the issuer with whose accounts people sign in, and
// names each field that makes no sense.
func TestLoginSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	good := map[string]string{
		"name": "Example Git", "issuer": "https://git.example.com/", "client_id": "7a3e", "client_secret": "login.secret", "claim": "email",
		"address": "https://forge.example.com",
	}
	read := func(alter map[string]string) (*Settings, error) {
		text := "tokens: tokens.yaml\nconsole:\n  key: k\n  login:\n"
		login := maps.Clone(good)
		maps.Copy(login, alter)
		for _, name := range slices.Sorted(maps.Keys(login)) {
			text += "    " + name + ": " + strconv.Quote(login[name]) + "\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSettings(path)
	}
	s, err := read(nil)
	if err != nil || s.Console.Login.ClientSecret != filepath.Join(filepath.Dir(path), "login.secret") || s.Console.Login.Claim != "email" {
		t.Fatalf("read: %+v, %v", s.Console.Login, err)
	}
	for _, address := range []string{"https://forge.example.com:8443", "http://localhost:8081", "http://127.0.0.1:8081"} {
		if _, err := read(map[string]string{"address": address}); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, bad := range []struct{ field, value, want string }{
		{"name", "", "console.login.name"},
		{"issuer", "", "issuer"},
		{"issuer", "http://git.example.com/", "issuer: \"http://git.example.com/\" has to begin with https://"},
		{"issuer", "https://a:b@git.example.com/", "is not the https address"},
		{"client_id", "", "client_id"},
		{"address", "", "console.login.address"},
		{"address", "https://forge.example.com/console/", "console.login.address"},
		{"address", "javascript:x", "console.login.address"},
		{"address", "http://forge.example.com", "console.login.address"},
		{"address", "http://localhost.example.com", "console.login.address"},
		{"ca", "none.pem", "none.pem"},
		{"secret", "x", "secret"},
	} {
		_, err := read(map[string]string{bad.field: bad.value})
		if err == nil || !strings.Contains(err.Error(), bad.want) || !strings.Contains(err.Error(), "gateway.yaml:") {
			t.Errorf("%s %q: %v, want %s", bad.field, bad.value, err, bad.want)
		}
	}
}

// TestAPILoginSettings reads the issuer whose tokens count for the API. Where
// people sign in to the console as well, it is the same one.
func TestAPILoginSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	const api = "login: {issuer: https://git.example.com/, client_id: pfl-forge}\n"
	const shown = "console: {key: k, login: {name: Git, client_id: 7a3e, address: https://forge.example.com, issuer: %s}}\n"
	read := func(text string) (*Settings, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSettings(path)
	}
	for _, good := range []string{api, strings.Replace(api, "client_id", "claim: sub, client_id", 1), api + fmt.Sprintf(shown, "https://git.example.com/")} {
		if s, err := read("tokens: tokens.yaml\n" + good); err != nil || s.Login.ClientID != "pfl-forge" {
			t.Errorf("%s: %v", good, err)
		}
	}
	for text, want := range map[string]string{
		api: "login: wants tokens",
		"tokens: t\nlogin: {issuer: https://git.example.com/}\n":                             "client_id",
		"tokens: t\nlogin: {client_id: x, issuer: http://git.example.com/}\n":                "has to begin with https://",
		"tokens: t\n" + api + fmt.Sprintf(shown, "https://other.example.com/"):               "another issuer or claim than console.login",
		"tokens: t\n" + api + fmt.Sprintf(shown, "https://git.example.com/, claim: email"):   "another issuer or claim than console.login",
		"tokens: t\nlogin: {issuer: https://git.example.com/, client_id: x, ca: none.pem}\n": "none.pem",
		"tokens: t\nlogin: {audience: x}\n":                                                  "audience",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gateway.yaml:") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestStopped: a task is stopped if it failed because it was cancelled,
// whatever else was to go on since; one that failed by itself is not.
func TestStopped(t *testing.T) {
	at := time.Date(2026, 11, 30, 7, 0, 0, 0, time.UTC)
	cancel := document.Decided{What: "cancel", Task: "a-001", At: at}
	stopped := pulls.Stopped{Status: forge.StatusCancelled, Task: "a-001", At: at}
	const by = forge.CancelledByAPerson
	for name, c := range map[string]struct {
		status    forge.Status
		task      forge.TaskStatus
		detail    string
		decisions []document.Decided
		want      pulls.Stopped
	}{
		"the task":                        {forge.StatusExecuting, forge.TaskFailed, by, []document.Decided{cancel}, stopped},
		"the task, and the intent failed": {forge.StatusBlocked, forge.TaskFailed, by, []document.Decided{cancel}, stopped},
		"the intent":                      {forge.StatusRejected, forge.TaskPending, by, nil, pulls.Stopped{Status: forge.StatusRejected, At: at}},
		"another task":                    {forge.StatusExecuting, forge.TaskFailed, by, []document.Decided{{What: "cancel", Task: "a-002"}}, pulls.Stopped{}},
		"retried since":                   {forge.StatusExecuting, forge.TaskPending, by, []document.Decided{cancel, {What: "retry"}}, pulls.Stopped{}},
		"failed by itself since":          {forge.StatusError, forge.TaskFailed, "review: no", []document.Decided{cancel, {What: "retry"}}, pulls.Stopped{}},
		"failed itself, a parent retried": {forge.StatusError, forge.TaskFailed, "review: no", []document.Decided{cancel}, pulls.Stopped{}},
		"the task; the rest goes on":      {forge.StatusExecuting, forge.TaskFailed, by + ": no", []document.Decided{cancel, {What: "retry"}}, stopped},
		"merged all the same":             {forge.StatusExecuting, forge.TaskDone, by, []document.Decided{cancel}, pulls.Stopped{}},
		"it goes on":                      {forge.StatusExecuting, forge.TaskPending, by, nil, pulls.Stopped{}},
	} {
		d := &document.Detail{TaskList: []document.TaskState{{ID: "a-001", Status: c.task, Detail: c.detail}}}
		d.Status, d.UpdatedAt, d.Decisions = c.status, at, c.decisions
		if got := stoppedIn(d, "a-001"); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestSettingsOfTheManifests reads the settings that the components of
// deploy/k8s give to gateways. Their ports name what listens there.
func TestSettingsOfTheManifests(t *testing.T) {
	for component, want := range map[string]func(*Settings) bool{
		"gateway": func(s *Settings) bool { return s.Tokens != "" && s.Hooks == "" && s.Forges == "" },
		"forges":  func(s *Settings) bool { return s.Tokens != "" && s.Hooks != "" && s.Forges != "" },
	} {
		s, err := ReadSettings(filepath.Join("..", "..", "deploy", "k8s", "components", component, "settings.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if s.Listen != ":8081" || !want(s) {
			t.Errorf("%s: %+v", component, s)
		}
	}
}
