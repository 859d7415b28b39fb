package settings_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat/settings"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

const good = `chats:
  - name: work
    kind: slack
    team: T0123ABCD
    token_file: bot
    app_token_file: app
    hooks: [slack]
    link: https://forge.example.com
    channels:
      - {channel: C0123ABCD, projects: [shop, api], on: [waiting, done], submit: shop}
      - {channel: C0123ABCE, projects: [api]}
    sweep_every: 1m
  - name: notices
    kind: webhook
    url_file: webhook
    channels: [{projects: [shop]}]
`

// people is a file of tokens whose people have accounts at the chat.
const people = `tokens:
  ada: {person: ada, accounts: {work: U0123ABCD}, projects: {shop: [approver]}}
  bob: {person: bob, accounts: {work: U0123ABCE, elsewhere: 7}, projects: {shop: [viewer]}}
  old: {person: old, accounts: {work: U0123ABCF}, projects: {shop: [viewer]}, expires: 2020-01-01T00:00:00Z}
`

// reader returns a function that reads a file of chats beside the files that it names.
func reader(t *testing.T, people string) func(string) (int, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"bot": "xoxb-1", "app": "xapp-1", "webhook": "https://chat.example.com/hooks/1", "plain": "http://chat.example.com/hooks/1", "two": "a b",
		"tokens.yaml": people,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	book, err := tokens.Open(filepath.Join(dir, "tokens.yaml"), log, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) (int, error) {
		path := filepath.Join(dir, "chats.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := settings.Read(path, settings.Config{
			Hooks:   []hooks.Hook{{Name: "slack", Kind: hooks.Slack}, {Name: "forge", Kind: hooks.Gitea}},
			Gateway: "gateway", Bus: &bus.Bus{}, Tokens: book, Log: log,
		})
		return len(list), err
	}
}

// TestChatSettings reads the file of chats, and refuses what would tell nobody,
// decide for the wrong person, or send a token elsewhere; each by its field and line.
func TestChatSettings(t *testing.T) {
	read := reader(t, people)
	if n, err := read(good); err != nil || n != 3 { // two watchers and a connection
		t.Fatalf("%d loops, %v", n, err)
	}
	for _, test := range []struct{ old, now, want string }{
		{"name: work", "name: Work", "chats[0].name"},
		{"name: work", "name: slack", "chats[0].name: is that of a hook as well"},
		{"name: notices", "name: work", "chats[1].name: is there twice"},
		{"kind: slack", "kind: teams", "chats[0].kind: is \"teams\"; it can be slack or webhook"},
		{"team: T0123ABCD", "team: acme", "chats[0].team"},
		{"token_file: bot", "token_file: none", "chats[0].token_file"},
		{"token_file: bot", "token_file: two", "chats[0].token_file: it holds no token of one line"},
		{"app_token_file: app", "app_token_file: none", "chats[0].app_token_file"},
		{"hooks: [slack]", "hooks: [forge]", "chats[0].hooks[0]: \"forge\" is no hook of the kind slack"},
		{"    app_token_file: app\n    hooks: [slack]\n", "", "chats[0].hooks: is empty, so that the people with accounts at work cannot decide"},
		{"link: https://forge.example.com", "link: javascript:x", "chats[0].link"},
		{"channel: C0123ABCD", "channel: '#shop'", "chats[0].channels[0].channel: \"#shop\" is no id of a channel"},
		{"channel: C0123ABCE", "channel: C0123ABCD", "chats[0].channels[1].channel: is there twice"},
		{"projects: [shop, api]", "projects: []", "chats[0].channels[0].projects: is empty"},
		{"projects: [shop, api]", "projects: [shop, a/b]", "chats[0].channels[0].projects"},
		{"on: [waiting, done]", "on: [waits]", "chats[0].channels[0].on[0]: is \"waits\""},
		{"submit: shop", "submit: bank", "chats[0].channels[0].submit: \"bank\" is not one of the projects"},
		{"sweep_every: 1m", "sweep_every: 1s", "chats[0].sweep_every: is 1s; at least 10s"},
		{"sweep_every: 1m", "sweep: 1m", "sweep"},
		{"url_file: webhook", "url_file: plain", "chats[1].url_file: the address in it has to begin with https"},
		{"url_file: webhook", "url_file: webhook\n    secret_file: plain", "chats[1].secret_file: the key has to be whsec_"},
		{"team: T0123ABCD", "team: T0123ABCD\n    private: true", "chats[0].private: is for a webhook"},
		{"url_file: webhook", "url_file: webhook\n    team: T1", "chats[1].team: is for Slack"},
		{"channels: [{projects: [shop]}]", "channels: [{projects: [shop], submit: shop}]", "chats[1].channels[0]: has channel or submit"},
		{"channels: [{projects: [shop]}]", "channels: []", "chats[1].channels: has 0 channels"},
		{"team: T0123ABCD", "team: T0123ABCD\n    url: http://slack.example.com", "chats[0].url: has to begin with https"},
	} {
		if !strings.Contains(good, test.old) {
			t.Fatalf("there is no %s", test.old)
		}
		_, err := read(strings.Replace(good, test.old, test.now, 1))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "chats.yaml:") {
			t.Errorf("%s: %v, want %s", test.now, err, test.want)
		}
	}
}

// TestChatAccounts: accounts in the file of tokens that cannot be at the chat
// are refused by their field.
func TestChatAccounts(t *testing.T) {
	for old, test := range map[string]struct{ now, want string }{
		"work: U0123ABCD": {"work: ada", "chats[0].name: has an account in the file of tokens that cannot be: tokens.ada.accounts.work: \"ada\" is no id"},
		"work: U0123ABCE": {"work: 7", "tokens.bob.accounts.work: \"7\" is no id"},
		"elsewhere: 7":    {"notices: U0123ABCE", "chats[1].name: has an account in the file of tokens that cannot be: tokens.bob.accounts.notices: a webhook"},
	} {
		if !strings.Contains(people, old) {
			t.Fatalf("there is no %s", old)
		}
		_, err := reader(t, strings.Replace(people, old, test.now, 1))(good)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "chats.yaml:") {
			t.Errorf("%s: %v, want %s", test.now, err, test.want)
		}
	}
}

// TestSlackGuide reads the files of the guide.
func TestSlackGuide(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/guide-slack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, said, found := strings.Cut(string(text), "```yaml\ntokens:\n")
	if said, _, _ = strings.Cut(said, "```"); !found {
		t.Fatal("the guide has no file of tokens")
	}
	read, chats := reader(t, "tokens:\n"+said), 0
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.HasPrefix(block, "chats:") {
			continue
		}
		for _, name := range []string{"slack.bot", "slack.app", "webhook.url"} {
			block = strings.ReplaceAll(block, name, map[string]string{"slack.bot": "bot", "slack.app": "app", "webhook.url": "webhook"}[name])
		}
		n, err := read(block)
		if err != nil {
			t.Error(err)
		}
		chats += n
	}
	if chats != 3 { // a watcher of Slack with its connection, and one of a webhook
		t.Errorf("the guide has %d loops", chats)
	}
}
