package pulls_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitea"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// object is a JSON object.
type object = map[string]any

// world is a fake forge with a repository whose main is protected, and a keeper
// as the account bot. ada may write and is a person; bob, whose account is
// root1, may do everything and is no person that we know; eve is a stranger.
type world struct {
	t *testing.T
	// fake is nil for a real forge, which has its own url and tokens.
	fake *forgetest.Fake
	// dialect is that of the keeper; empty for Gitea's.
	dialect hooks.Kind
	url     string
	tokens  map[string]string
	repo    string
	to      forge.Key
	in      *forge.PullInput

	mu sync.Mutex
	// reported are the snapshots that were published.
	reported []forge.Result
}

var attempt = forge.Attempt{Task: "it-crashes-0123456789-001", Step: forge.StepOpenPull, Number: 2, Claim: 1}

// newWorld returns a world on the fake.
func newWorld(t *testing.T) *world {
	t.Helper()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := worldOn(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"}, "web")
	w.fake = f
	return w
}

// onForges runs a test on the fake in each of its dialects, and on a real Gitea
// where PFL_FORGE_GITEA names the folder with its url and tokens.
func onForges(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("fake gitea", func(t *testing.T) { test(t, newWorld(t)) })
	t.Run("fake github", func(t *testing.T) {
		w := newWorld(t)
		w.dialect, w.in.Policy.Method = hooks.GitHub, "squash"
		test(t, w)
	})
	t.Run("fake gitlab", func(t *testing.T) {
		w := newWorld(t)
		w.dialect = hooks.GitLab
		w.fake.Lab.Set(w.repo, forgetest.Project{Pipelines: true})
		test(t, w)
	})
	dir := os.Getenv("PFL_FORGE_GITEA")
	if dir == "" {
		return
	}
	t.Run("gitea", func(t *testing.T) {
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(text))
		}
		tokens := map[string]string{"root1": read("admin.token"), "bot": read("bot.token"), "ada": read("ada.token"), "eve": read("eve.token")}
		test(t, worldOn(t, read("url"), tokens, fmt.Sprintf("p%d", time.Now().UnixNano())))
	})
}

// worldOn returns a world with a branch forge/task-1 that is one commit ahead of main.
func worldOn(t *testing.T, address string, tokens map[string]string, name string) *world {
	t.Helper()
	w := &world{t: t, url: address, tokens: tokens, repo: "root1/" + name, to: forge.Key{Project: "shop", Intent: "it-crashes-0123456789"}}
	w.as("root1", "POST", "/user/repos", object{"name": name, "auto_init": true}, nil)
	w.as("root1", "PUT", "/repos/"+w.repo+"/collaborators/bot", object{"permission": "admin"}, nil)
	w.as("root1", "PUT", "/repos/"+w.repo+"/collaborators/ada", object{"permission": "write"}, nil)
	w.as("root1", "POST", "/repos/"+w.repo+"/labels", object{"name": "forge", "color": "#00aabb"}, nil)
	w.as("root1", "POST", "/repos/"+w.repo+"/branch_protections", object{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"pfl-forge/verify", "ci/unit"}, "required_approvals": 1,
		"block_on_outdated_branch": true, "dismiss_stale_approvals": true, "block_on_rejected_reviews": true,
	}, nil)
	head := w.commit("main", "forge/task-1", "a.txt", "a\n")
	w.in = &forge.PullInput{
		Branch: "forge/task-1", Base: "main", Head: head, Parent: w.tip(), PatchID: "14f5aa00", Title: "Mend the crash",
		Policy: forge.PullPolicy{Method: "fast-forward", By: "forge", Labels: []string{"forge"}},
		Facts: forge.PullFacts{
			Request: "It crashes.", Requesters: []string{"ada"}, Commands: []string{"make check"}, CostUSD: 0.84, Attempts: 2,
			Requirements: []forge.PullRequirement{{Text: "It does not crash", Met: true, Evidence: []string{"a.txt:1"}}}, Rejected: []string{"it still crashed"},
		},
	}
	return w
}

// as calls the forge as a person.
func (w *world) as(user, method, path string, in object, out any) {
	w.t.Helper()
	person.Person{API: w.url + person.Gitea, Token: w.tokens[user]}.Does(w.t, method, path, in, out)
}

// commit puts a file on a branch, which begins at another one, and returns the commit.
func (w *world) commit(from, branch, file, content string) string {
	w.t.Helper()
	var got struct{ Commit struct{ SHA string } }
	in := object{"content": base64.StdEncoding.EncodeToString([]byte(content)), "message": file, "branch": from}
	if from != branch {
		in["new_branch"] = branch
	}
	w.as("bot", "POST", "/repos/"+w.repo+"/contents/"+file, in, &got)
	return got.Commit.SHA
}

// tip returns the commit of main.
func (w *world) tip() string {
	w.t.Helper()
	var got struct{ Commit struct{ ID string } }
	w.as("bot", "GET", "/repos/"+w.repo+"/branches/main", nil, &got)
	return got.Commit.ID
}

// status has a check say something about the head.
func (w *world) status(user, name, state string) {
	w.t.Helper()
	w.as(user, "POST", "/repos/"+w.repo+"/statuses/"+w.in.Head, object{"context": name, "state": state, "description": "1 of 7 failed"}, nil)
}

// review has a person review the first pull request.
func (w *world) review(user, event, body string) {
	w.t.Helper()
	w.as(user, "POST", "/repos/"+w.repo+"/pulls/1/reviews", object{
		"event": event, "body": body, "comments": []object{{"path": "a.txt", "body": "why " + user + "?", "new_position": 1}},
	}, nil)
}

// keeper returns a keeper as the account bot.
func (w *world) keeper(change ...func(*pulls.Config)) *pulls.Keeper {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(w.tokens["bot"]), 0o600); err != nil {
		w.t.Fatal(err)
	}
	var client interface {
		pulls.Forge
		Close()
	}
	var err error
	switch w.dialect {
	case hooks.GitHub:
		client, err = github.New(github.Config{URL: w.url, TokenFile: path, Bots: []string{"robot"}})
	case hooks.GitLab:
		client, err = gitlab.New(gitlab.Config{URL: w.url, TokenFile: path, Bots: []string{"robot"}})
	default:
		client, err = gitea.New(gitea.Config{URL: w.url, TokenFile: path, Bots: []string{"robot"}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	cfg := pulls.Config{
		Name: "work", Forge: client, Repositories: map[forge.ProjectID]string{"shop": w.repo}, Tokens: w.book(people),
		Publish: w.publish, Replica: "one", Secrets: redact.New("s3cret-of-ours"), Log: slog.New(slog.DiscardHandler),
		Every: time.Hour, Debounce: time.Millisecond, Again: time.Millisecond,
	}
	for _, c := range change {
		c(&cfg)
	}
	return pulls.New(cfg)
}

// people is the file of tokens.
const people = `tokens:
  ada: {person: ada, accounts: {work: 3}, projects: {shop: [approver]}}
  eve: {person: evelyn, accounts: {work: 4}, projects: {shop: [approver]}}
`

// book returns the book of a file of tokens.
func (w *world) book(text string) *tokens.Book {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	b, err := tokens.Open(path, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// publish takes a report.
func (w *world) publish(_ context.Context, r forge.Result) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reported = append(w.reported, r)
	return nil
}

// reports returns what was reported.
func (w *world) reports() []forge.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]forge.Result(nil), w.reported...)
}

// open is Open, which has to succeed.
func (w *world) open(k *pulls.Keeper) *forge.PullRequest {
	w.t.Helper()
	p, err := k.Open(wait.Context(w.t), w.to, attempt, w.in)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// shown is a pull request as the forge shows it.
type shown struct {
	// Title and Body are as they stand at the forge, with all that cannot be seen.
	Title, Body string
	Draft       bool
	Merged      bool
	Labels      []struct{ Name string }
}

// show returns what the forge shows of the first pull request.
func (w *world) show() (s shown) {
	w.t.Helper()
	w.as("eve", "GET", "/repos/"+w.repo+"/pulls/1", nil, &s)
	return s
}

func TestMain(m *testing.M) {
	wait.Beside()
	os.Exit(m.Run())
}
