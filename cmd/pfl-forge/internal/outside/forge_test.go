package outside

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/look"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// forgeWorld is an installation with a forge: a runner, an analyzer that asks
// one question and then finds one risky task, the door for hooks, and a watcher.
type forgeWorld struct {
	t      *testing.T
	nats   *bustest.Server
	url    string
	tokens map[string]string
	repo   string
	// dialect says how the forge is spoken to, and bot is our account there.
	dialect hooks.Kind
	bot     string
	// nothing has the analyzer find that there is nothing to do.
	nothing atomic.Bool
	// planned is the text of its plan; nil for none.
	planned atomic.Pointer[string]
	// rules are the operator's; empty for forgeRules. log has what watchers say.
	rules string
	log   locked
	// others are watched beside repo, and before it.
	others []string
	ids    map[string]int64
	// file is the file of tokens, and book reads it; empty before there is one.
	file string
	book *tokens.Book
}

// object is a JSON object.
type object = map[string]any

// apis are where the API of each dialect begins.
var apis = map[hooks.Kind]string{hooks.Gitea: "/api/v1", hooks.GitHub: "/api/v3", hooks.GitLab: "/api/v4"}

// as calls the forge as a person. The fake is the same one in each dialect, so
// people speak Gitea's.
func (w *forgeWorld) as(user, method, path string, in object, out any) {
	w.t.Helper()
	w.asIn(apis[hooks.Gitea], user, method, path, in, out)
}

// asIn calls the forge as a person, by an API.
func (w *forgeWorld) asIn(api, user, method, path string, in object, out any) {
	w.t.Helper()
	person.Person{API: w.url + api, Token: w.tokens[user]}.Does(w.t, method, path, in, out)
}

// onForges runs a test on the fake in each of its dialects, in the quick size in one of them, and on
// a real Gitea where PFL_FORGE_GITEA names the folder with its url and tokens.
func onForges(t *testing.T, test func(t *testing.T, w *forgeWorld, fake *forgetest.Fake)) {
	t.Helper()
	for _, dialect := range testsize.First(1, []hooks.Kind{hooks.Gitea, hooks.GitHub, hooks.GitLab}) {
		t.Run("fake "+string(dialect), func(t *testing.T) {
			t.Parallel()
			f := forgetest.NewFake()
			t.Cleanup(f.Close)
			w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
			w.dialect = dialect
			test(t, w, f)
		})
	}
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
		test(t, newForgeWorld(t, read("url"), map[string]string{
			"root1": read("admin.token"), "bot": read("bot.token"), "ada": read("ada.token"), "eve": read("eve.token"),
		}), nil)
	})
}

// newForgeWorld starts everything but the watcher.
func newForgeWorld(t *testing.T, url string, tokens map[string]string) *forgeWorld {
	t.Helper()
	w := &forgeWorld{t: t, dialect: hooks.Gitea, bot: "bot", nats: bustest.StartServer(t), url: url, tokens: tokens, ids: map[string]int64{}}
	name := fmt.Sprintf("w%d", time.Now().UnixNano())
	w.repo = "root1/" + name
	w.as("root1", http.MethodPost, "/user/repos", object{"name": name, "auto_init": true}, nil)
	w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/bot", object{"permission": "admin"}, nil)
	w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/ada", object{"permission": "write"}, nil)
	w.as("root1", http.MethodPost, "/repos/"+w.repo+"/labels", object{"name": "forge", "color": "#00aabb"}, nil)
	for user := range tokens {
		if user == "ada2" { // there is none of that name yet
			continue
		}
		var got struct{ ID int64 }
		w.as(user, http.MethodGet, "/user", nil, &got)
		w.ids[user] = got.ID
	}
	w.decide()
	return w
}

// decide runs a runner and an analyzer until the test ends.
func (w *forgeWorld) decide() {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	ready := make(chan struct{})
	running.Go(func() {
		err := runner.Run(ctx, runner.Config{
			Bus: b, Log: slog.New(slog.DiscardHandler), Serve: true, Ready: func() { close(ready) }, Rules: runner.RulesConfig{Alone: true},
		})
		if err != nil {
			w.t.Error(err)
		}
	})
	wait.For(w.t, ready)
	running.Go(func() {
		err := b.Commands.Consume(ctx, work.Config{Step: forge.StepAnalyze, Replica: "one", Parallel: 1}, func(ctx context.Context, j *work.Job) error {
			out := &forge.Analysis{Risk: forge.RiskMed, Tasks: []forge.TaskPlan{{Name: "one", Title: "one"}}}
			if plan := w.planned.Load(); plan != nil {
				out.Tasks[0].Plan = *plan
			}
			if w.nothing.Load() {
				out = &forge.Analysis{Risk: forge.RiskLow, NothingToDo: "it is so already"}
			} else if j.Command.Attempt.Number == 2 { // the first one is for the policy alone
				out = &forge.Analysis{Risk: forge.RiskMed, Clarifications: []forge.Clarification{{Question: "Which @ada, Closes #1?"}}}
			} else if wish := j.Command.Wish; wish != nil {
				out.Tasks[0].Title = wish.Person + ": " + wish.Words
			}
			return b.Results.Publish(ctx, forge.Result{To: j.Command.To, Attempt: j.Command.Attempt, Replica: "one", Output: out})
		})
		if err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

const forgeRules = `
rules:
  - {name: labelled, when: {label: forge, permission: write}, do: go, project: shop, risk: low}
  - {name: again, when: {command: run, permission: write}, do: go, project: shop}
`

// hooked has the forge tell the door what happens.
func (w *forgeWorld) hooked() {
	w.t.Helper()
	const secret = "correct-horse-battery"
	path := filepath.Join(w.t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		w.t.Fatal(err)
	}
	mux := http.NewServeMux()
	hooks.NewDoor(hooks.Config{
		Hooks: []hooks.Hook{{Name: "work", Kind: w.dialect, Secrets: []string{path}, PerMinute: 6000}},
		Store: w.nats.Connect(w.t).Deliveries.Store, Log: slog.New(slog.DiscardHandler),
	}).Mount(mux)
	srv := httptest.NewServer(mux)
	w.t.Cleanup(srv.Close)
	if w.dialect == hooks.GitLab {
		w.hookedInLab(srv.URL+"/hooks/work", secret)
		return
	}
	w.asIn(apis[w.dialect], "root1", http.MethodPost, "/repos/"+w.repo+"/hooks", object{
		"type": "gitea", "active": true, "events": []string{"issues", "issue_label", "issue_comment"},
		"config": object{"url": srv.URL + "/hooks/work", "content_type": "json", "secret": secret},
	}, nil)
}

// watch runs a watcher until what it returns is called, or the test ends.
func (w *forgeWorld) watch(every time.Duration) (stop func()) {
	w.t.Helper()
	token := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(w.tokens["bot"]), 0o600); err != nil {
		w.t.Fatal(err)
	}
	client := w.client(token)
	rules, err := intake.Parse("intake.yaml", []byte(cmp.Or(w.rules, forgeRules)))
	if err != nil {
		w.t.Fatal(err)
	}
	b := w.nats.Connect(w.t)
	served, book := w.asks(b)
	watcher := look.New(look.Config{
		Name: "work", Gateway: "gateway", Forge: client, Repositories: append(slices.Clone(w.others), w.repo),
		Projects: rules.Projects(), Hooks: []string{"work"},
		Rules: rules, API: served, Tokens: book, Submissions: b.Submissions, Deliveries: b.Deliveries, Changes: b.Changes, Intakes: b.Intakes,
		Secrets: redact.New(), Log: slog.New(slog.NewTextHandler(&w.log, nil)), Every: every, Debounce: 20 * time.Millisecond, Seldom: time.Millisecond,
	})
	return runs(w.t, func(ctx context.Context) error {
		defer client.Close()
		return watcher.Run(ctx)
	})
}

// open opens a labelled issue, and returns its path.
func (w *forgeWorld) open() string {
	w.t.Helper()
	var got struct{ Number int64 }
	w.as("eve", http.MethodPost, "/repos/"+w.repo+"/issues", object{"title": "It crashes", "body": "Mend it."}, &got)
	path := fmt.Sprintf("/repos/%s/issues/%d", w.repo, got.Number)
	w.as("ada", http.MethodPost, path+"/labels", object{"labels": []string{"forge"}}, nil)
	return path
}

// ours returns the comments of the bot on an issue.
func (w *forgeWorld) ours(issue string) (bodies []string) {
	w.t.Helper()
	var list []struct {
		Body string
		User struct{ Login string }
	}
	w.as("root1", http.MethodGet, issue+"/comments", nil, &list)
	for _, c := range list {
		if c.User.Login == w.bot {
			bodies = append(bodies, c.Body)
		}
	}
	return bodies
}

// until waits for our comment to hold a text, and returns it. There is never a second one.
func (w *forgeWorld) until(issue, text string) (body string) {
	w.t.Helper()
	wait.Until(w.t, "our comment says "+text, func() bool {
		bodies := w.ours(issue)
		if len(bodies) > 1 {
			w.t.Fatalf("there are %d comments of ours: %q", len(bodies), bodies)
		}
		body = strings.Join(bodies, "")
		return strings.Contains(body, text)
	})
	return body
}

// say comments as a person.
func (w *forgeWorld) say(user, issue, body string) {
	w.t.Helper()
	w.as(user, http.MethodPost, issue+"/comments", object{"body": body}, nil)
}

// hash waits for a hash to approve that is not the former one.
func (w *forgeWorld) hash(issue, former string) (hash string) {
	w.t.Helper()
	wait.Until(w.t, "there is something to approve", func() bool {
		_, rest, _ := strings.Cut(strings.Join(w.ours(issue), ""), "`/forge approve ")
		hash, _, _ = strings.Cut(rest, "`")
		return hash != "" && hash != former
	})
	return hash
}
