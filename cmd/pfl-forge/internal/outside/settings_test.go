package outside

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/document/setup"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/quota"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// The attacks that settings have to stand, each with its test:
//
//   - a secret is in a command, an address, a webhook, a variable, a flag, or in the file of tokens: TestSettingsHaveNoSecrets,
//     TestSettingsAreTold, TestConsoleSettings
//   - a value is HTML, reorders text or is endless: TestConsoleSettingsOfLiars, TestSettingsAreBounded
//   - another project's settings, targets or people are asked for, or the role is taken away: TestSettingsAreTold, TestConsoleSettings
//   - who may not audit asks who has which role: TestSettingsAreTold, TestConsoleSettings
//   - a result that came too late tells other settings: TestSettingsOfALateResult
//   - no worker has read the file, or an older one does not tell: TestSettingsAreTold, TestOlderWorkersTellNoSettings

// hideout is what no page and no answer may have: it is planted in every place
// that can have a secret.
const hideout = "s3cr3t"

// settingsFile is a pfl-forge.yaml with secrets.
const settingsFile = `
verify:
  - DB_PASSWORD=` + hideout + `-env go test ./... --token ` + hideout + `-flag
  - curl https://user:` + hideout + `-url@example.com/
worktree_setup: [KEY="` + hideout + ` setup" make deps]
checks: {unit: {command: PASSWORD=` + hideout + `-check make unit}}
recipes: {bump: {run: TOKEN=` + hideout + `-recipe ./bump.sh, params: [{name: KEY, default: ` + hideout + `-default}]}}
agents: {mine: {command: [/usr/bin/mine, --key, ` + hideout + `-agent]}}
roles: {review: codex}
merge: {how: pull_request}
policy: {approvals: {count: 2}, sandbox: require, protected_paths: [go.mod, Makefile]}
budget: {day_usd: 25}
`

// policied returns the policy of a file at a commit, as a worker reads it.
func policied(t *testing.T, file, commit string) *forge.Policy {
	t.Helper()
	p, err := config.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	policy := p.Rules()
	policy.Approvals.Commit = commit
	for _, s := range p.Settings() {
		if s.By != config.ByDefault {
			policy.Settings = append(policy.Settings, s)
		}
	}
	return policy
}

// targets are notifications with a secret in each part that can have one.
func targets(t *testing.T) *notify.Config {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"hook": "https://hooks.example.com/" + hideout + "-hook", "key": hideout + "-signing"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := notify.Parse([]byte(fmt.Sprintf(`notifications:
  desk: {on: [failed], command: [/usr/bin/%[1]s, --password, %[1]s-command]}
  chat: {on: [failed, budget], projects: [shop, attic], webhook: "https://u:%[1]s@%[1]s.example.com/%[1]s", secret_file: %[2]s/key}
  file: {on: [failed], webhook_file: %[2]s/hook}
  theirs: {projects: [bank], command: [true]}
`, hideout, dir)), "n.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// settingsOf returns the settings of shop.
func (w *world) settingsOf(who string) (s setup.InForce) {
	w.t.Helper()
	got := w.request(who, http.MethodGet, "/api/v1/projects/shop/settings", "")
	got.wants(w.t, who, http.StatusOK)
	if err := json.Unmarshal([]byte(got.text), &s); err != nil {
		w.t.Fatal(err)
	}
	w.hides(who, got.text)
	return s
}

// hides checks that a text has no secret of the installation.
func (w *world) hides(about, text string) {
	w.t.Helper()
	secrets := []string{hideout, "sha256"}
	for _, s := range w.secrets {
		secrets = append(secrets, s, sha(s))
	}
	for _, s := range secrets {
		if strings.Contains(text, s) {
			w.t.Errorf("%s: %s is in %s", about, s, text)
		}
	}
}

// setting returns a setting by its name.
func setting(s *setup.InForce, name string) setup.Setting {
	i := slices.IndexFunc(s.Settings, func(one setup.Setting) bool { return one.Name == name })
	if i < 0 {
		return setup.Setting{}
	}
	return s.Settings[i]
}

// TestSettingsAreTold asks by HTTP by which settings a project is worked on: the defaults
// before an analysis, then those of the file with its commit, who is notified, and, those who
// may audit alone, who has which role. None of the secrets that are planted everywhere is told.
func TestSettingsAreTold(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.told = targets(t)
	commit := strings.Repeat("1", 40)
	w.analysis = func(*forge.Command) *forge.Analysis {
		return &forge.Analysis{Policy: policied(t, settingsFile, commit), Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	}
	w.decides(quota.Limits{})
	s := w.settingsOf("viewer")
	if s.Project != "shop" || s.Read != nil || s.Rules < int(rules.First) || s.People != nil ||
		setting(&s, "budget.day_usd") != (setup.Setting{Name: "budget.day_usd", Value: "100", From: "default"}) {
		t.Errorf("before an analysis: %+v", s)
	}
	path, _ := w.proposed("first")
	s = w.settingsOf("viewer")
	if s.Read == nil || s.Read.Commit != commit || !strings.HasSuffix(path, "/"+string(s.Read.Intent)) || s.Read.At.IsZero() {
		t.Errorf("it was read at %+v", s.Read)
	}
	for name, want := range map[string]setup.Setting{
		"verify":                 {Value: "DB_PASSWORD=…\ncurl …", From: "repository"},
		"budget.day_usd":         {Value: "25", From: "repository"},
		"policy.approvals.count": {Value: "2", From: "repository"},
		"policy.sandbox":         {Value: "require", From: "repository"},
		"policy.protected_paths": {Value: "go.mod\nMakefile", From: "repository"},
		"roles.review":           {Value: "codex", From: "repository"},
		"merge.how":              {Value: "pull_request", From: "repository"},
		"policy.network":         {Value: "full", From: "default"},
	} {
		want.Name = name
		if got := setting(&s, name); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	want := []setup.Target{
		{Name: "chat", By: "webhook", On: []string{"failed", "budget"}},
		{Name: "desk", By: "command", On: []string{"failed"}},
		{Name: "file", By: "webhook", On: []string{"failed"}},
	}
	if fmt.Sprint(s.Notifications) != fmt.Sprint(want) {
		t.Errorf("notified are %v, want %v", s.Notifications, want)
	}
	for _, who := range []string{"viewer", "bob", "scanner"} {
		if s := w.settingsOf(who); s.People != nil {
			t.Errorf("%s is told of %+v", who, s.People)
		}
	}
	for _, who := range []string{"ada", "every"} {
		var people []string
		s := w.settingsOf(who)
		for _, p := range s.People {
			people = append(people, fmt.Sprintf("%s %s %s %v %t %t", p.Token, p.Kind, p.Name, p.Roles, p.Everywhere, p.Expires.IsZero()))
		}
		if got, want := strings.Join(people, "; "), "ada person ada [approver operator requester] false true; bob person bob [approver] false true; "+
			"every person eve [auditor] true true; former person ada [approver operator requester] false false; "+
			"scanner system scanner [requester] false true; viewer person vic [viewer] false true"; got != want {
			t.Errorf("%s is told of\n%s, want\n%s", who, got, want)
		}
	}
	w.request("banker", http.MethodGet, "/api/v1/projects/shop/settings", "").wants(t, "another project", http.StatusForbidden)
	w.request("viewer", http.MethodGet, "/api/v1/projects/shop/settings?all=1", "").wants(t, "a parameter", http.StatusBadRequest, `"all"`)
	w.hides("the log", w.log.String())
}

// TestSettingsFollow: the settings are those that were read last, whichever intent read them.
func TestSettingsFollow(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	var n int
	w.analysis = func(c *forge.Command) *forge.Analysis {
		n = 1 + slices.IndexFunc([]string{"first", "second", "third"}, func(key string) bool { return strings.HasPrefix(string(c.To.Intent), key) })
		file := fmt.Sprintf("budget: {day_usd: %d}\n", n)
		return &forge.Analysis{
			Policy: policied(t, file, strings.Repeat(fmt.Sprint(n), 40)), Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}},
		}
	}
	w.decides(quota.Limits{})
	for i, key := range []string{"first", "second", "third"} {
		w.proposed(key)
		s := w.settingsOf("viewer")
		if got := setting(&s, "budget.day_usd"); got.Value != fmt.Sprint(i+1) || s.Read == nil || s.Read.Commit != strings.Repeat(fmt.Sprint(i+1), 40) {
			t.Errorf("after the %s: %+v, %+v", key, got, s.Read)
		}
	}
}

// TestOlderWorkersTellNoSettings: a worker of before settings tells a policy
// alone. What the rules go by is not made up, and the page says where it was read.
func TestOlderWorkersTellNoSettings(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	w.analysis = func(*forge.Command) *forge.Analysis {
		p := policied(t, settingsFile, strings.Repeat("2", 40))
		p.Settings = nil
		return &forge.Analysis{Policy: p, Risk: forge.RiskHigh, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
	}
	w.decides(quota.Limits{})
	w.proposed("first")
	if s := w.settingsOf("viewer"); s.Read != nil {
		t.Errorf("settings that were not told were read at %+v", s.Read)
	}
}
