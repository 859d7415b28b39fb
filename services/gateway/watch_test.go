package gateway

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const goodForge = `forges:
  - name: work
    kind: gitea
    url: https://git.example.com
    token_file: token
    repositories: [shop/web, shop/api]
    hooks: [work]
    rules: intake.yaml
    pull_requests: {web: shop/web}
    sweep_every: 1m
`

// people is a file of tokens whose people have accounts at the forge.
const people = `tokens:
  ada: {person: ada, accounts: {work: 7}, projects: {web: [approver]}}
  bob: {person: bob, accounts: {work: 8, chat: U8}, projects: {web: [viewer]}}
`

// bookOf returns the book of a file of tokens.
func bookOf(t *testing.T, text string) *tokens.Book {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := tokens.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ofApp has the settings of a GitHub App whose key is missing.
const ofApp = "kind: github\n    url: https://github.com\n    app: {id: Iv1, installation: 7, key_file: none.pem}"

// testKey is a private key of an App, made once: it takes a while.
var testKey = sync.OnceValue(func() []byte {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(k)})
})

// TestGuides reads the files of the guides.
func TestGuides(t *testing.T) {
	for _, kind := range []hooks.Kind{hooks.Gitea, hooks.GitHub, hooks.GitLab} {
		t.Run(string(kind), func(t *testing.T) { readGuide(t, kind) })
	}
}

// readGuide reads the files of the guide for a kind of forge.
func readGuide(t *testing.T, forge hooks.Kind) {
	t.Helper()
	text, err := os.ReadFile("../../docs/guide-" + string(forge) + ".md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		kind, _, _ := strings.Cut(block, ":")
		if kind == "rules" && !strings.Contains(block, "project:") { // those of a repository
			if _, err := intake.ParseNarrowing("pfl-forge-intake.yaml", []byte(block)); err != nil {
				t.Error(err)
			}
			continue
		}
		name := map[string]string{"forges": "forges.yaml", "rules": "intake.yaml", "hooks": "hooks.yaml", "merge": "pfl-forge.yaml", "tokens": "tokens.yaml"}[kind]
		if err := os.WriteFile(filepath.Join(dir, name), []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string][]byte{
		"gitea.token": []byte("0123456789abcdef"), "gitlab.token": []byte("0123456789abcdef"), "github.pem": testKey(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "hooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	known, err := hooks.Parse("hooks.yaml", data)
	if err != nil && !strings.Contains(err.Error(), string(forge)+".secret") { // the file of the secret is not on this machine
		t.Fatal(err)
	}
	if known == nil {
		known = []hooks.Hook{{Name: "work", Kind: forge}}
	}
	said, err := os.ReadFile(filepath.Join(dir, "tokens.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	book := bookOf(t, string(said))
	list, err := readForges(filepath.Join(dir, "forges.yaml"), known, &Config{Bus: &bus.Bus{}, Log: slog.New(slog.DiscardHandler)}, nil, book)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d forges, %v", len(list), err)
	}
	there := 0
	if err := book.CheckAccounts(list[0].issues.Name, func(_, _ string) error { there++; return nil }); err != nil || there != 2 {
		t.Errorf("%d people have accounts at the forge %s, %v", there, list[0].issues.Name, err)
	}
}

// TestForgeSettings reads the file of forges, and refuses what would watch nothing,
// speak for the wrong person, or send the token in the clear; each by its field.
func TestForgeSettings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("token", "0123456789abcdef")
	write("intake.yaml", "rules:\n  - {name: a, when: {label: forge, permission: write}, do: go, project: web}\n"+
		"  - {name: b, when: {label: api, permission: write}, do: ask, project: api}\n  - {name: c, do: ignore}\n")
	write("bad.yaml", "rules:\n  - {name: a, do: go}\n")
	known := []hooks.Hook{{Name: "work", Kind: hooks.Gitea}, {Name: "chat", Kind: hooks.Slack}}
	read := func(text, people string) (string, error) {
		write("forges.yaml", text)
		cfg := &Config{Bus: &bus.Bus{}, Log: slog.New(slog.DiscardHandler)}
		list, err := readForges(filepath.Join(dir, "forges.yaml"), known, cfg, nil, bookOf(t, people))
		if err != nil {
			return "", err
		}
		if len(list) != 1 {
			t.Fatalf("%d forges are read", len(list))
		}
		if list[0].pulls == nil || !list[0].pulls.Has("web") || list[0].pulls.Has("api") {
			t.Errorf("the pull requests are %+v", list[0].pulls)
		}
		c := list[0].issues
		if c.Every != time.Minute || len(c.Projects) != 2 || c.Projects[0] != "api" {
			t.Errorf("read is %+v", c)
		}
		return intake.Plain("a text with 0123456789abcdef in it", c.Secrets, 1000), nil
	}
	if text, err := read(goodForge, people); err != nil || strings.Contains(text, "0123456789abcdef") || !strings.Contains(text, "in it") {
		t.Fatalf("%q, %v", text, err)
	}
	for _, test := range []struct{ old, now, want string }{
		{"kind: gitea", "kind: gitlub", "forges[0].kind: is \"gitlub\"; it can be gitea, github, gitlab"},
		{"kind: gitea", "kind: gitlab", "forges[0].hooks[0]: \"work\" is no hook of the kind gitlab"},
		{"kind: gitea", "kind: gitlab\n    app: {id: a, installation: 7, key_file: none}", "forges[0].app: only github has Apps"},
		{"shop/api]", "shop/front/api]", "forges[0].repositories[1]: has to be owner/name"},
		{"kind: gitea", "kind: github", "forges[0].hooks[0]: \"work\" is no hook of the kind github"},
		{"kind: gitea", "kind: github\n    app: {id: a, installation: 7, key_file: none}", "forges[0].app: there is token_file as well"},
		{"kind: gitea", "kind: gitea\n    app: {id: a, installation: 7, key_file: none}", "forges[0].app: only github has Apps"},
		{"kind: gitea\n    url: https://git.example.com\n    token_file: token", ofApp, "forges[0].app.key_file: open"},
		{"kind: gitea\n    url: https://git.example.com\n    token_file: token", strings.Replace(ofApp, "7", "0", 1), "forges[0].app.installation: has to be"},
		{"name: work", "name: gateway", "forges[0].name"},
		{"name: work", "name: Work", "forges[0].name"},
		{"https:", "http:", "forges[0].url: has to begin with https"},
		{"token_file: token", "token_file: none", "forges[0].token_file"},
		{
			"repositories: [shop/web, shop/api]\n    hooks: [work]\n    rules: intake.yaml\n    pull_requests: {web: shop/web}\n",
			"rules: intake.yaml\n", "forges[0].repositories: has none, nor has pull_requests",
		},
		{"shop/api]", "shop/../api]", "forges[0].repositories[1]"},
		{"{web: shop/web}", "{web: shop/../web}", "forges[0].pull_requests.web: has to be owner/name"},
		{"{web: shop/web}", "{web: shop/front/web}", "forges[0].pull_requests.web: has to be owner/name"},
		{"{web: shop/web}", "{Web: shop/web}", "forges[0].pull_requests.Web: project id"},
		{
			"    sweep_every: 1m\n", strings.Replace(goodForge[len("forges:\n"):], "name: work", "name: home", 1),
			"forges[1].pull_requests.web: is a project of the forge work as well",
		},
		{"hooks: [work]", "hooks: [chat]", "forges[0].hooks[0]: \"chat\" is no hook of the kind gitea"},
		{"rules: intake.yaml", "rules: bad.yaml", "forges[0].rules: bad.yaml:2"},
		{"rules: intake.yaml", "rules: none.yaml", "forges[0].rules"},
		{"sweep_every: 1m", "sweep_every: 1s", "forges[0].sweep_every: is 1s; at least 10s"},
		{"sweep_every: 1m", "sweep: 1m", "sweep"},
		{"    sweep_every: 1m\n", goodForge[len("forges:\n"):], "forges[1].name: is there twice"},
	} {
		_, err := read(strings.Replace(goodForge, test.old, test.now, 1), people)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "forges.yaml:") {
			t.Errorf("%s: %v, want %s", test.now, err, test.want)
		}
	}
	for _, test := range []struct{ old, now, want string }{
		{"work: 8", "work: bob", "forges[0].name: has an account in the file of tokens that cannot be: tokens.bob.accounts.work: is \"bob\""},
		{"work: 8", "work: 0", "tokens.bob.accounts.work: is \"0\""},
		{"work: 8", "work: 08", "tokens.bob.accounts.work: is \"08\""},
		{"person: bob", "person: runner", "tokens.bob.accounts.work"},
	} {
		_, err := read(goodForge, strings.Replace(people, test.old, test.now, 1))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "forges.yaml:") {
			t.Errorf("%s: %v, want %s", test.now, err, test.want)
		}
	}
}

// TestGitLabSettings reads a forge of GitLab, whose projects may be in groups
// of groups, and refuses names that are paths.
func TestGitLabSettings(t *testing.T) {
	dir := t.TempDir()
	known := []hooks.Hook{{Name: "work", Kind: hooks.GitLab}}
	read := func(repository string) error {
		for name, text := range map[string]string{
			"token": "0123456789abcdef", "forges.yaml": "forges:\n  - name: lab\n    kind: gitlab\n    url: https://gitlab.com\n    token_file: token\n" +
				"    hooks: [work]\n    pull_requests: {web: \"" + repository + "\"}\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg := &Config{Bus: &bus.Bus{}, Log: slog.New(slog.DiscardHandler)}
		_, err := readForges(filepath.Join(dir, "forges.yaml"), known, cfg, nil, tokens.None())
		return err
	}
	for _, good := range []string{"shop/web", "shop/front/web", "a/b/c/d/e"} {
		if err := read(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"web", "shop/../web", "shop/front/", "shop//web", "shop%2Fweb", "shop/web?x=y"} {
		if err := read(bad); err == nil || !strings.Contains(err.Error(), "forges[0].pull_requests.web: has to be owner/name or group/subgroup/name") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
