package outside

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/analyzer"
	"github.com/pfl-forge/pfl-forge/services/gateway"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
	"github.com/pfl-forge/pfl-forge/services/implementer"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// pullWorld is an installation whose project merges by pull requests: a forge with
// a repository of git whose main is protected, and all services but the reflector,
// on one server. The change is that of a recipe, which adds a line each time.
type pullWorld struct {
	*forgeWorld

	// fake is nil for a real forge.
	fake *forgetest.Fake
	// origin is the repository, as git takes it.
	origin string
	// settings has the folder with the settings of the gateway.
	settings string
	agents   []agent.Agent // beside that of recipes
	project  string        // the settings of the project; empty for pullSettings
}

// pullSettings are those of the project; %s stands for who merges, how, and
// what else is said of merging.
const pullSettings = `agent: claude
verify: [test -f note.txt]
merge: {how: pull_request, %s, checks: [ci/unit]}
recipes:
  note:
    title: Note it
    run: echo noted >> note.txt
    check: grep -q noted note.txt
`

// newPullWorld starts everything but the gateway, on the fake. agents are beside that of recipes.
func newPullWorld(t *testing.T, how string, agents ...agent.Agent) *pullWorld {
	t.Helper()
	fake := forgetest.NewFake()
	t.Cleanup(fake.Close)
	w := &pullWorld{fake: fake, agents: agents, forgeWorld: &forgeWorld{
		t: t, url: fake.URL(), repo: "root1/web", tokens: map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"},
	}}
	w.begin(how, func() string { return fake.Dir(w.repo) })
	return w
}

// begin makes the repository, which git finds at an origin, and starts all services.
func (w *pullWorld) begin(how string, origin func() string) {
	t := w.t
	t.Helper()
	w.settings, w.dialect, w.nats, w.ids = t.TempDir(), hooks.Gitea, bustest.StartServer(t), map[string]int64{}
	_, name, _ := strings.Cut(w.repo, "/")
	w.as("root1", http.MethodPost, "/user/repos", object{"name": name, "auto_init": true}, nil)
	w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/bot", object{"permission": "admin"}, nil)
	w.as("root1", http.MethodPut, "/repos/"+w.repo+"/collaborators/ada", object{"permission": "write"}, nil)
	w.as("root1", http.MethodPost, "/repos/"+w.repo+"/labels", object{"name": "forge", "color": "#00aabb"}, nil)
	for user := range w.tokens {
		var got struct{ ID int64 }
		w.as(user, http.MethodGet, "/user", nil, &got)
		w.ids[user] = got.ID
	}
	w.origin = origin()
	clone := t.TempDir()
	w.git("", "clone", "-q", w.origin, clone)
	if err := os.WriteFile(filepath.Join(clone, "pfl-forge.yaml"), fmt.Appendf(nil, cmp.Or(w.project, pullSettings), how), 0o600); err != nil {
		t.Fatal(err)
	}
	w.git(clone, "add", "-A")
	w.git(clone, "commit", "-q", "-m", "settings")
	w.git(clone, "push", "-q", "origin", "HEAD:main")
	w.as("root1", http.MethodPost, "/repos/"+w.repo+"/branch_protections", object{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"pfl-forge/verify", "pfl-forge/review", "ci/unit"},
		"required_approvals": 1, "block_on_outdated_branch": true, "dismiss_stale_approvals": true, "block_on_rejected_reviews": true,
	}, nil)
	w.services()
}

// git runs git as a person who is no one of the installation.
func (w *pullWorld) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(wait.Context(w.t), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=ada", "GIT_AUTHOR_EMAIL=ada@localhost", "GIT_COMMITTER_NAME=ada", "GIT_COMMITTER_EMAIL=ada@localhost",
		"GIT_CONFIG_GLOBAL=/dev/null")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// services runs a runner, an analyzer, an implementer and a reviewer until the test ends.
func (w *pullWorld) services() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	ready := make(chan struct{})
	log := slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	decides := w.nats.Connect(w.t)
	running.Go(func() {
		if err := runner.Run(ctx, runner.Config{
			Bus: decides, Log: log, Serve: true, Rules: runner.RulesConfig{Alone: true}, Ready: func() { close(ready) },
		}); err != nil {
			w.t.Error(err)
		}
	})
	wait.For(w.t, ready)
	repos, b := repotest.Clone(w.t, w.origin, w.agents...), w.nats.Connect(w.t)
	analyze, review := analyzer.New(repos, log), reviewer.New(repos, "one", nil)
	implement := implementer.New(implementer.Config{Repositories: repos, Bus: b, Replica: "one", Log: log})
	for _, s := range []struct {
		handlers []service.Handler
		run      func(context.Context, *service.Worker) error
	}{{analyze.Handlers(), analyze.Run}, {implement.Handlers(), implement.Run}, {review.Handlers(), review.Run}} {
		running.Go(func() {
			_ = s.run(ctx, &service.Worker{Bus: b, Replica: "one", Log: log, Handlers: s.handlers, Parallel: 2, Grace: time.Millisecond, LogDir: w.t.TempDir()})
		})
	}
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

// gateway runs a gateway that watches issues and keeps pull requests, until
// what it returns is called, or the test ends.
func (w *pullWorld) gateway() (stop func()) {
	w.t.Helper()
	for name, text := range map[string]string{
		"token":       w.tokens["bot"],
		"intake.yaml": "rules:\n  - {name: labelled, when: {label: forge, permission: write}, do: go, project: shop, risk: low, recipe: note, as: person}\n",
		"forges.yaml": fmt.Sprintf("forges:\n  - {name: work, kind: %s, url: %q, token_file: token, repositories: [%q], "+
			"rules: intake.yaml, pull_requests: {shop: %q}}\n", w.dialect, w.url, w.repo, w.repo),
		"tokens.yaml": w.people(),
	} {
		if err := os.WriteFile(filepath.Join(w.settings, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	b := w.nats.Connect(w.t)
	log := slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	_, stop = runsGateway(w.t, gateway.Config{
		Settings: &gateway.Settings{
			Listen: "127.0.0.1:0", Tokens: filepath.Join(w.settings, "tokens.yaml"), Forges: filepath.Join(w.settings, "forges.yaml"),
		}, Bus: b, Log: log, Replica: "gate",
		Worker: func(h ...service.Handler) *service.Worker {
			return &service.Worker{Bus: b, Replica: "gate", Log: log, Handlers: h, Parallel: 1, Grace: time.Millisecond}
		},
	})
	return stop
}

// pull is a pull request as its forge shows it.
type pull struct {
	Number             int64
	Title, Body, State string
	Merged             bool
	MergeCommit        string `json:"merge_commit_sha"`
	Head               struct{ Ref, SHA string }
}

// pull waits for the only pull request to be as it should.
func (w *pullWorld) pull(what string, is func(*pull) bool) (p pull) {
	w.t.Helper()
	wait.Until(w.t, "the pull request "+what, func() bool {
		var all []pull
		w.as("root1", http.MethodGet, "/repos/"+w.repo+"/pulls?state=all&base_branch=main&limit=50", nil, &all)
		if len(all) > 1 {
			w.t.Fatalf("there are %d pull requests", len(all))
		}
		if len(all) == 0 {
			return false
		}
		p = all[0]
		return is(&p)
	})
	return p
}

// check has the forge's own check say something about a commit.
func (w *pullWorld) check(head, state string) {
	w.t.Helper()
	w.as("root1", http.MethodPost, "/repos/"+w.repo+"/statuses/"+head, object{"context": "ci/unit", "state": state, "description": "2 of 7 failed"}, nil)
}

// review has ada review the pull request.
func (w *pullWorld) review(p *pull, event, body string) {
	w.t.Helper()
	w.reviewBy("ada", p, event, body)
}

// reviewBy is review by another user.
func (w *pullWorld) reviewBy(user string, p *pull, event, body string) {
	w.t.Helper()
	in := object{"event": event, "body": body}
	if event == "REQUEST_CHANGES" {
		in["comments"] = []object{{"path": "note.txt", "body": "Why?", "new_position": 1}}
	}
	w.as(user, http.MethodPost, fmt.Sprintf("/repos/%s/pulls/%d/reviews", w.repo, p.Number), in, nil)
}

// answers returns what we say to the remarks of people on a pull request: in
// their threads, or below it.
func (w *pullWorld) answers(p *pull) (list []string) {
	w.fake.Reviews(w.repo, p.Number, func(l reviews.List) {
		for _, v := range l {
			for _, m := range v.Remarks {
				if m.To != 0 {
					list = append(list, m.Body)
				}
			}
		}
	})
	for _, c := range w.fake.Comments(w.repo, p.Number) {
		if c.By != "ada" {
			list = append(list, c.Body)
		}
	}
	return list
}

// intent returns the summary and the view of the only intent.
func (w *pullWorld) intent() forge.Summary {
	w.t.Helper()
	list, err := w.nats.Connect(w.t).Journal.Summaries(wait.Context(w.t), "shop")
	if err != nil || len(list) != 1 {
		w.t.Fatalf("there are %d intents, %v", len(list), err)
	}
	return list[0]
}

// waits returns when the project says why the only change in the queue waits.
func (w *pullWorld) waits(text string) {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	wait.Until(w.t, "the project says "+text, func() bool {
		records, _, err := b.Journal.Load(wait.Context(w.t), forge.Key{Project: "shop"})
		return err == nil && strings.Contains(fmt.Sprint(records[len(records)-1].Summary.Project.Queue), text)
	})
}

// heard returns when the only intent was told of comments.
func (w *pullWorld) heard(text string) {
	w.t.Helper()
	b := w.nats.Connect(w.t)
	wait.Until(w.t, "it is told of "+text, func() bool {
		list, err := b.Journal.Summaries(wait.Context(w.t), "shop")
		if err != nil || len(list) != 1 {
			w.t.Fatalf("there are %d intents, %v", len(list), err)
		}
		c := list[0].Comments
		return c != nil && strings.HasPrefix(fmt.Sprintf(" by %s in %s", c.Account, c.Ref), text)
	})
}

// TestIssueToMergedPullRequest: a labelled issue becomes an intent, the intent a verified and
// reviewed change on a branch, and that a pull request whose text and statuses say what was found.
// A check of the forge fails, then ada asks for changes: each has the change made again in the
// same pull request. That she comments on it is told to those who follow the work.
// When she approves and the check passes, the forge merges exactly that commit,
// the merge is proved, and the issue is closed. Between any two of these the gateway is killed,
// and another one goes on. So it is on Gitea and on GitLab, with its own settings of a project.
func TestIssueToMergedPullRequest(t *testing.T) {
	t.Parallel()
	for _, dialect := range []hooks.Kind{hooks.Gitea, hooks.GitLab} {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			w := newPullWorld(t, "by: forge, method: squash")
			w.dialect = dialect
			w.fake.Lab.Set(w.repo, forgetest.Project{Method: "merge", Pipelines: true, Resolved: true})
			w.issueToMerged()
		})
	}
}

// issueToMerged is TestIssueToMergedPullRequest for a dialect.
func (w *pullWorld) issueToMerged() {
	t := w.t
	t.Helper()
	issue := w.open()
	stop := w.gateway()
	// Nothing tells the gateway but its first sweep.
	again := func() { stop(); stop = w.gateway() }
	first := w.pull("is opened", func(p *pull) bool { return p.State == "open" })
	if first.Head.Ref == "" || !strings.Contains(first.Body, "Mend it.") {
		t.Errorf("it is %+v", first)
	}
	w.check(first.Head.SHA, "failure")
	again()
	second := w.pull("is made again after its check", func(p *pull) bool { return p.Head.SHA != first.Head.SHA })
	w.check(second.Head.SHA, "success")
	w.review(&second, "REQUEST_CHANGES", "One line more.")
	again()
	third := w.pull("is made again for ada", func(p *pull) bool { return p.Head.SHA != second.Head.SHA })
	w.check(third.Head.SHA, "success")
	if w.dialect == hooks.Gitea { // the words of her review are a comment on GitLab
		w.say("ada", fmt.Sprintf("/repos/%s/issues/%d", w.repo, third.Number), "I look at it tomorrow.")
	}
	again()
	w.waits("ada asked for changes")
	w.heard(fmt.Sprintf(" by work account %d ada in %s pull request %d comment ", w.ids["ada"], w.repo, third.Number))
	if got := w.answers(&third); len(got) != 1 || !strings.Contains(got[0], "Reworked in `"+third.Head.SHA[:12]+"`") {
		t.Errorf("the answers to ada's remark are %q", got)
	}
	w.fake.Reviews(w.repo, third.Number, func(l reviews.List) { l.Resolve("note.txt", "ada") }) // which is no other wish
	w.review(&third, "APPROVED", "Good.")
	again()
	merged := w.pull("is merged", func(p *pull) bool { return p.Merged })
	w.landed(issue, &third, merged.MergeCommit, "noted\nnoted\nnoted")
	w.says(merged.MergeCommit, &third)
}

// says checks that a commit on main, which the forge made at our order, says
// what the commit of the implementer does: of which task it is, and for whom.
func (w *pullWorld) says(commit string, p *pull) {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), "said")
	w.git("", "clone", "-q", w.origin, dir)
	w.git(dir, "fetch", "-q", "origin", p.Head.SHA)
	pushed, message := w.git(dir, "log", "-1", "--format=%B", p.Head.SHA), w.git(dir, "log", "-1", "--format=%B", commit)
	got := trailers.Read(message)
	title, _, _ := strings.Cut(pushed, "\n")
	if diff := gocmp.Diff(trailers.Read(pushed), got); diff != "" || len(got) != 1 || got[0].Requester == "" || !strings.HasPrefix(message, title+" (") {
		w.t.Errorf("%s\nmain says %q, and %q was pushed", diff, message, pushed)
	}
}

// landed returns when the issue is closed by the only intent, and checks that
// main is at a merge of a commit, with the note that it has.
func (w *pullWorld) landed(issue string, p *pull, merge, note string) {
	w.t.Helper()
	var got struct{ State string }
	wait.Until(w.t, "the issue is closed", func() bool {
		w.as("root1", http.MethodGet, issue, nil, &got)
		return got.State == "closed"
	})
	if s := w.intent(); s.Status != forge.StatusDone {
		w.t.Errorf("the intent is %s: %s", s.Status, s.Reason)
	}
	dir := filepath.Join(w.t.TempDir(), "landed")
	w.git("", "clone", "-q", w.origin, dir)
	if main := w.git(dir, "rev-parse", "origin/main"); main != merge {
		w.t.Errorf("main is at %s, and it was merged as %s", main, merge)
	}
	w.git(dir, "fetch", "-q", "origin", p.Head.SHA)
	if w.git(dir, "rev-parse", "origin/main^{tree}") != w.git(dir, "rev-parse", p.Head.SHA+"^{tree}") || w.git(dir, "show", "origin/main:note.txt") != note {
		w.t.Error("what was merged is not what was verified")
	}
}

// TestRevokedTokenFailsNoChange: the forge does not take the gateway's token
// when the pull request is to be opened. The change waits for a person with
// that reason, and goes on as it is when that is mended.
func TestRevokedTokenFailsNoChange(t *testing.T) {
	t.Parallel()
	w := newPullWorld(t, "by: people, method: squash")
	w.fake.Script(forgetest.Fault{Method: http.MethodPost, Part: "/pulls", Status: http.StatusUnauthorized})
	w.open()
	w.gateway()
	var held forge.Summary
	wait.Until(t, "the change is held", func() bool {
		list, err := w.nats.Connect(t).Journal.Summaries(wait.Context(t), "shop")
		if err != nil || len(list) == 0 || list[0].Waiting != forge.WaitingPull {
			return false
		}
		held = list[0]
		return true
	})
	if !strings.Contains(held.Reason, "401") || !strings.Contains(held.Reason, "pfl-forge retry") {
		t.Errorf("the reason is %q", held.Reason)
	}
	retry := forge.Event{ID: "mended", To: held.Key, Actor: "ada", Message: &forge.Retry{}}
	if r, err := w.nats.Connect(t).Submissions.Ask(wait.Context(t), retry); err != nil || r.Decision != forge.Applied {
		t.Fatalf("retry: %+v, %v", r, err)
	}
	w.pull("is opened", func(p *pull) bool { return p.State == "open" })
	wait.Until(t, "the change goes on", func() bool { return w.intent().Waiting == "" })
	if s := w.intent(); len(s.Tasks) != 1 || s.Tasks[0].Attempt != 1 {
		t.Errorf("the change was made again: %+v", s.Tasks)
	}
}
