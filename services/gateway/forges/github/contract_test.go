package github_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/forgedir/schematest"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/github"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// contract is the part of GitHub's published description that is about what the
// client asks: of each operation its query, its body, and its answers, with
// those fields that were seen. makeContract makes it.
type contract struct {
	// Source says of which description it is a part.
	Source     string               `json:"source"`
	Operations map[string]operation `json:"operations"`
	// Schemas are those of bodies and answers, by <operation> <status>, or <operation> in.
	Schemas map[string]any `json:"schemas"`
}

// operation is what the description says of one, by its method and path.
type operation struct {
	// Query has the allowed values of each parameter; none if all are.
	Query map[string][]any `json:"query"`
	// Statuses are those of success.
	Statuses []string `json:"statuses"`
}

const contractFile = "testdata/contract.json"

// schemaName returns the place of a schema in the contract.
func schemaName(name string) string {
	return "/schemas/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
}

// find returns the operation of a request; false if none is.
func (c *contract) find(method, path string) (string, bool) {
	var found string
	for name := range c.Operations {
		m, template, _ := strings.Cut(name, " ")
		if m == method && matches(template, path) && len(name) > len(found) {
			found = name
		}
	}
	return found, found != ""
}

// aPart is a part of a template that stands for any.
var aPart = regexp.MustCompile(`\\\{[a-z_]+\\\}`)

// matches reports whether a path is one of a template. A ref has slashes.
func matches(template, path string) bool {
	pattern := aPart.ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`)
	if strings.HasSuffix(template, "/{ref}") || strings.HasSuffix(template, "/{branch}") {
		pattern = strings.TrimSuffix(pattern, `[^/]+`) + `.+`
	}
	return regexp.MustCompile("^" + pattern + "$").MatchString(path)
}

// exchanges has the client ask all that it can ask, and returns what was said.
func exchanges(t *testing.T) []forgetest.Exchange {
	t.Helper()
	w := newWorld(t)
	ctx := wait.Context(t)
	var mu sync.Mutex
	var list []forgetest.Exchange
	w.fake.Hub.Record(func(e forgetest.Exchange) {
		mu.Lock()
		defer mu.Unlock()
		e.Path = strings.TrimPrefix(e.Path, "/api/v3")
		list = append(list, e)
	})
	bot, app := w.bot(), w.app(w.fake.Hub.Install("Iv1", &key().PublicKey, repo))
	w.as("eve", "POST", "/repos/"+repo+"/issues", `{"title": "T", "body": "B"}`)
	w.as("ada", "POST", "/repos/"+repo+"/issues/1/labels", `{"labels": ["forge"]}`)
	w.commit("a.txt", true)
	_, e1 := github.Lacks(ctx, bot, repo)
	_, e2 := github.MakeLabel(ctx, bot, repo, "agents")
	_, _, e3 := github.InstallationIn(ctx, github.Config{URL: w.fake.URL(), Now: w.at.Now, App: &github.App{ID: "Iv1", KeyFile: keyFile(t)}}, repo)
	if err := errors.Join(e1, e2, e3); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*github.Client{bot, app} {
		said, err := c.Say(ctx, repo, forges.OfIssue(1), "x")
		_, e1 := c.Self(ctx)
		_, e2 := c.Issue(ctx, repo, 1)
		_, e3 := c.Account(ctx, repo, "eve")
		_, e4 := c.Changed(ctx, repo, time.Unix(0, 0))
		_, e5 := c.Comments(ctx, repo, forges.OfIssue(1), time.Unix(0, 0))
		w.as("root1", "POST", "/repos/"+repo+"/contents/rules.yaml", `{"branch": "main", "message": "m", "content": "cnVsZXM6IFtdCg=="}`)
		_, e7 := c.File(ctx, repo, "rules.yaml")
		w.fake.Team("root1/core", false, "ada")
		_, e8 := c.InTeam(ctx, repo, intake.Account{ID: 3, Login: "ada"}, "core")
		_, e9 := c.InTeam(ctx, repo, intake.Account{ID: 4, Login: "eve"}, "core")
		p, e6 := c.OpenPull(ctx, repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B", Draft: true, Labels: []string{"forge"}})
		if err := errors.Join(err, e1, e2, e3, e4, e5, e6, e7, e8, e9, c.Edit(ctx, repo, forges.OfIssue(1), said.ID, "y"),
			c.React(ctx, repo, forges.OfIssue(1), said.ID, forges.Seen),
			c.CloseIssue(ctx, repo, 1)); err != nil {
			t.Fatal(err)
		}
		for _, o := range []forges.Outcome{forges.Pending, forges.Passed, forges.Failed} {
			if err := c.SetStatus(ctx, repo, p.Head, &forges.Status{Name: "pfl-forge/verify", Outcome: o, Text: "t", URL: "https://example.com"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.fake.Hub.Check(forgetest.CheckRun{Repository: repo, Commit: w.head(bot), Name: "ci", Status: "completed", Conclusion: "success", App: "ci"})
	w.review(2, "REQUEST_CHANGES", `{"path": "a.txt", "body": "why?", "new_position": 1}`)
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main", "enable_status_check": true, "status_check_contexts": ["a"]}`)
	w.fake.Hub.RuleSet(repo, "main", "pull_request", map[string]any{"required_approving_review_count": 0, "dismiss_stale_reviews_on_push": true})
	w.finish(bot)
	mu.Lock()
	defer mu.Unlock()
	return list
}

// head returns the commit of the branch forge/a.
func (w *world) head(c *github.Client) string {
	w.t.Helper()
	head, err := c.BranchHead(wait.Context(w.t), repo, "forge/a")
	if err != nil {
		w.t.Fatal(err)
	}
	return string(head)
}

// finish asks for all that is about the pull request, and merges it.
func (w *world) finish(c *github.Client) {
	w.t.Helper()
	ctx := wait.Context(w.t)
	list, e1 := c.Reviews(ctx, repo, 2)
	for _, r := range list {
		for _, t := range r.Threads {
			e1 = errors.Join(e1, c.Answer(ctx, repo, 2, t.Topic, "Reworked."))
		}
	}
	_, again := c.Reviews(ctx, repo, 2)
	e1 = errors.Join(e1, again)
	_, e2 := c.Protection(ctx, repo, "main")
	p, e3 := c.FindPull(ctx, repo, "forge/a", "main")
	_, e4 := c.Statuses(ctx, repo, p.Head)
	_, e5 := c.Behind(ctx, repo, p.Head, p.BaseHead)
	e6 := c.EditPull(ctx, repo, 2, forges.PullText{Title: "U", Body: "C"})
	e7 := c.ReopenPull(ctx, repo, 2)
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main"}`)
	e8 := c.Merge(ctx, repo, 2, p.Head, forges.Squash)
	_, e9 := c.ChangedPulls(ctx, repo, "bot", time.Time{})
	if err := errors.Join(e1, e2, e3, e4, e5, e6, e7, e8, e9); err != nil {
		w.t.Fatal(err)
	}
}

// TestContract: what the client sends, and what the fake answers, is what
// GitHub's published description has, field by field: each that is there is
// known and has its type, and each that has to be there is.
func TestContract(t *testing.T) {
	list := exchanges(t)
	if path := os.Getenv("PFL_FORGE_GITHUB_OPENAPI"); path != "" {
		makeContract(t, path, list)
	}
	data, err := os.ReadFile(contractFile)
	if err != nil {
		t.Fatal(err)
	}
	var c contract
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range c.Schemas {
		names = append(names, schemaName(name))
	}
	schemas := schematest.CompileIn(t, data, names...)
	check := func(name string, text []byte) {
		t.Helper()
		s := schemas[schemaName(name)]
		if s == nil {
			t.Errorf("%s has no schema for %s", name, text)
		} else if err := schematest.Validate(s, text); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
		}
	}
	seen := map[string]bool{}
	for _, e := range list {
		if e.Path == "/api/graphql" || e.Status >= http.StatusMultipleChoices {
			continue
		}
		name, ok := c.find(e.Method, e.Path)
		if !ok {
			t.Errorf("the description has no %s %s", e.Method, e.Path)
			continue
		}
		seen[name] = true
		checkQuery(t, c.Operations[name].Query, &e)
		if len(e.In) > 0 {
			check(name+" in", e.In)
		}
		if len(e.Out) > 0 {
			check(fmt.Sprint(name, " ", e.Status), e.Out)
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d operations were asked for", len(seen))
	}
}

// checkQuery compares the query of a request with the parameters that there are.
func checkQuery(t *testing.T, known map[string][]any, e *forgetest.Exchange) {
	t.Helper()
	query, err := url.ParseQuery(e.Query)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range query {
		allowed, ok := known[name]
		if !ok || len(allowed) > 0 && !strings.Contains(fmt.Sprint(allowed), values[0]) {
			t.Errorf("%s %s has the parameter %s=%s", e.Method, e.Path, name, values[0])
		}
	}
}

// TestPublishedPayloads: each delivery that GitHub publishes as an example
// leads to what it is about.
func TestPublishedPayloads(t *testing.T) {
	data, err := os.ReadFile("testdata/payloads.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Event string
		Body  json.RawMessage
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, "https://github.com", newClock())
	events := map[string]int{}
	for _, p := range list {
		type about struct {
			Number      int64
			Title, Body string
			Head        string `json:"head_sha"`
			Pull        any    `json:"pull_request"`
		}
		var b struct {
			Issue      about
			Pull       about  `json:"pull_request"`
			Run        about  `json:"check_run"`
			Checks     about  `json:"check_suite"`
			SHA        string `json:"sha"`
			Repository struct {
				ID   int64
				Name string `json:"full_name"`
			}
		}
		if err := json.Unmarshal(p.Body, &b); err != nil {
			t.Fatal(err)
		}
		want := forges.Hint{Repository: b.Repository.Name, RepositoryID: b.Repository.ID}
		switch {
		case strings.HasPrefix(p.Event, "pull_request"):
			want.Number, want.Pull = b.Pull.Number, true
		case b.Issue.Pull != nil:
			want.Number, want.Pull = b.Issue.Number, true
		case strings.HasPrefix(p.Event, "issue"):
			want.Number, want.Text = b.Issue.Number, intake.Hash(b.Issue.Title, b.Issue.Body)
		default:
			want.Commit = git.OID(b.SHA + b.Run.Head + b.Checks.Head)
		}
		if got, err := c.Hint(p.Event, p.Body); err != nil || got != want || got.Number == 0 && got.Commit == "" {
			t.Errorf("%s %s leads to %+v, %v", p.Event, p.Body, got, err)
		}
		events[p.Event]++
	}
	if len(events) != 8 {
		t.Errorf("there are %v", events)
	}
}
