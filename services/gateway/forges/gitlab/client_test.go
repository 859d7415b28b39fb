package gitlab_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/person"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// now is the time of the client's clock.
var now = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// clientOf returns a client of the account bot, with a clock that stands still.
func clientOf(t testing.TB, url string) *gitlab.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("bot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := gitlab.New(gitlab.Config{URL: url, TokenFile: path, Bots: []string{"Robot"}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// world is a fake forge with a project of root1, in which bot may administer
// and ada write, and an issue of eve, who is a stranger.
type world struct {
	*gitlab.Client

	t    *testing.T
	fake *forgetest.Fake
}

const repo = "root1/web"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, fake: forgetest.NewFake()}
	t.Cleanup(w.fake.Close)
	w.Client = clientOf(t, w.fake.URL())
	w.as("root1", "POST", "/user/repos", `{"name": "web"}`)
	w.role("bot", "admin")
	w.role("ada", "write")
	w.as("root1", "POST", "/repos/"+repo+"/labels", `{"name": "forge"}`)
	w.as("eve", "POST", "/repos/"+repo+"/issues", `{"title": "T", "body": "B"}`)
	return w
}

// role gives a user a role in the project.
func (w *world) role(user, role string) {
	w.t.Helper()
	w.as("root1", "PUT", "/repos/"+repo+"/collaborators/"+user, `{"permission": "`+role+`"}`)
}

// as has a person act, by Gitea's API of the fake.
func (w *world) as(user, method, path, body string) map[string]any {
	w.t.Helper()
	return w.in("/api/v1", user, method, path, body)
}

// in has a person act, by an API of the fake.
func (w *world) in(api, user, method, path, body string) map[string]any {
	w.t.Helper()
	var raw json.RawMessage
	person.Person{API: w.fake.URL() + api, Token: user}.Does(w.t, method, path, json.RawMessage(body), &raw)
	out := map[string]any{}
	_ = json.Unmarshal(raw, &out) // what is none has no fields
	return out
}

// commit puts a file on the branch forge/a, and returns the commit.
func (w *world) commit(name string, begins bool) git.OID {
	w.t.Helper()
	in := `{"content": "YQo=", "message": "m", "branch": "forge/a"}`
	if begins {
		in = `{"content": "YQo=", "message": "m", "branch": "main", "new_branch": "forge/a"}`
	}
	commit := w.as("bot", "POST", "/repos/"+repo+"/contents/"+name, in)["commit"].(map[string]any)
	return git.OID(commit["sha"].(string))
}

// open opens the merge request of forge/a, and returns its number.
func (w *world) open() int64 {
	w.t.Helper()
	p, err := w.OpenPull(wait.Context(w.t), repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B"})
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Number
}

// review has a person review a merge request.
func (w *world) review(user string, number int64, event, body string) {
	w.t.Helper()
	w.as(user, "POST", fmt.Sprintf("/repos/%s/pulls/%d/reviews", repo, number), fmt.Sprintf(`{"event": %q, "body": %q}`, event, body))
}

// isNotFound reports whether an error says that something is not there.
func isNotFound(err error) bool { return errors.Is(err, forges.ErrNotFound) }

// TestRoles: each role has the permission that it has on other forges; who is no member reads what
// is not private, who is blocked or has ended as a member may nothing, and programs are told.
func TestRoles(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	check := func(what, login string, kind intake.Kind, permission intake.Permission) {
		t.Helper()
		if a, err := w.Account(ctx, repo, login); err != nil || a.Login != login || a.Kind != kind || a.Permission != permission || a.ID <= 0 {
			t.Errorf("%s: %+v, %v", what, a, err)
		}
	}
	check("no member of what is public", "eve", intake.Outsider, intake.Read)
	w.fake.Lab.Set(repo, forgetest.Project{Visibility: "internal"})
	check("no member of what is internal", "eve", intake.Outsider, intake.Read)
	w.fake.Lab.Set(repo, forgetest.Project{Visibility: "private"})
	check("no member of what is private", "eve", intake.Outsider, intake.None)
	for role, want := range map[string]intake.Account{
		"guest": {Kind: intake.Outsider, Permission: intake.Read}, "planner": {Kind: intake.Member, Permission: intake.Triage},
		"reporter": {Kind: intake.Member, Permission: intake.Triage}, "write": {Kind: intake.Member, Permission: intake.Write},
		"admin": {Kind: intake.Member, Permission: intake.Admin},
	} {
		w.role("eve", role)
		check(role, "eve", want.Kind, want.Permission)
	}
	check("the owner", "root1", intake.Member, intake.Admin)
	w.fake.Lab.Change(func(s *forgetest.LabState) { s.Blocked["eve"] = true })
	check("who is blocked", "eve", intake.Outsider, intake.None)
	w.role(forgetest.AppBot, "write")
	check("a program", forgetest.AppBot, intake.Bot, intake.Write)
	for _, login := range []string{"nobody-of-that-name", "../eve", "eve&username=ada", "eve/../ada", ""} {
		if a, err := w.Account(ctx, repo, login); !isNotFound(err) {
			t.Errorf("the account %q is %+v, %v", login, a, err)
		}
	}
}

// TestMembers: what GitLab says of a member is read: one that has ended or that
// nobody has let in is none, whatever the level is.
func TestMembers(t *testing.T) {
	member := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v4/users/"):
			fmt.Fprint(w, `{"id": 7, "username": "ada", "bot": false}`)
		case r.URL.Path == "/api/v4/users":
			fmt.Fprint(w, `[{"id": 7, "username": "ada", "state": "active"}]`)
		case strings.Contains(r.URL.Path, "/members/all/7"):
			fmt.Fprint(w, member)
		default:
			fmt.Fprint(w, `{"id": 3, "path_with_namespace": "shop/web", "visibility": "private"}`)
		}
	}))
	t.Cleanup(srv.Close)
	c := clientOf(t, srv.URL)
	for body, want := range map[string]intake.Permission{
		`{"access_level": 30, "expires_at": null}`:                intake.Write,
		`{"access_level": 30, "expires_at": "2026-05-05"}`:        intake.Write,
		`{"access_level": 40, "expires_at": "2026-05-04"}`:        intake.None,
		`{"access_level": 40, "membership_state": "awaiting"}`:    intake.None,
		`{"access_level": 5}`:                                     intake.None, // minimal access
		`{"access_level": 25, "member_role": {"name": "custom"}}`: intake.Triage,
		`{"access_level": 60}`:                                    intake.Admin,
	} {
		member = body
		if a, err := c.Account(wait.Context(t), "shop/web", "ada"); err != nil || a.Permission != want {
			t.Errorf("%s: %+v, %v", body, a, err)
		}
	}
}

// TestNames: no name becomes another path, branch or commit, and the forge is not asked.
func TestNames(t *testing.T) {
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	c, ctx := clientOf(t, f.URL()), wait.Context(t)
	for _, name := range []string{
		"", "web", "root1/../web", "root1/web/../../users/1", "root1%2Fweb/x", "root1/web?x", "1", "root1//web", "root1/web#x", "a\r\nb/c",
	} {
		_, e1 := c.Repository(ctx, name)
		_, e2 := c.Issue(ctx, name, 1)
		_, e3 := c.Say(ctx, name, forges.OfPull(1), "x")
		_, e4 := c.Account(ctx, name, "ada")
		for _, err := range []error{e1, e2, e3, e4, c.CloseIssue(ctx, name, 1), c.Merges(ctx, name, forges.Squash)} {
			if err == nil || !strings.Contains(err.Error(), "has to be owner/name") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	for _, b := range []git.Branch{"", "../issues", "a..b", "eve:main", "a b", "-x", "a?b", "a\r\nHost: x", "refs/heads/x"} {
		_, e1 := c.FindPull(ctx, repo, b, "main")
		_, e2 := c.OpenPull(ctx, repo, "forge/a", b, forges.PullText{Title: "x"})
		_, e3 := c.Protection(ctx, repo, b)
		_, e4 := c.BranchHead(ctx, repo, b)
		for _, err := range []error{e1, e2, e3, e4} {
			if err == nil || !strings.Contains(err.Error(), "branch") {
				t.Errorf("branch %q: %v", b, err)
			}
		}
	}
	_, e1 := c.Statuses(ctx, repo, "../../user")
	_, e2 := c.Behind(ctx, repo, "../../user", "x")
	e3 := c.SetStatus(ctx, repo, "../../user", &forges.Status{Name: "x", Outcome: forges.Passed})
	for _, err := range []error{e1, e2, e3, c.Merge(ctx, repo, 1, "", forges.Squash)} {
		if err == nil {
			t.Error("a commit that is a path")
		}
	}
	if n := f.Asked("GET", "") + f.Asked("POST", "") + f.Asked("PUT", ""); n != 0 {
		t.Errorf("the forge was asked %d times", n)
	}
}

// TestNestedGroups: a project in groups of groups is one part of the path, and
// all else is asked for by its number.
func TestNestedGroups(t *testing.T) {
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := &world{t: t, fake: f, Client: clientOf(t, f.URL())}
	w.as("bot", "POST", "/user/repos", `{"name": "front/shop/web"}`)
	const name = "bot/front/shop/web"
	r, err := w.Repository(wait.Context(t), name)
	if err != nil || r.Name != name || r.ID <= 0 {
		t.Errorf("it is %+v, %v", r, err)
	}
	if list, err := w.Changed(wait.Context(t), name, time.Time{}); err != nil || len(list) != 0 || f.Asked("GET", fmt.Sprintf("/projects/%d/issues", r.ID)) != 1 {
		t.Errorf("changed are %+v, %v", list, err)
	}
}

// TestTopics: an issue and a merge request of one number are two things, and
// nothing for one goes to the other.
func TestTopics(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		switch {
		case r.URL.Path == "/api/v4/projects/shop/web":
			fmt.Fprint(w, `{"id": 3, "path_with_namespace": "shop/web"}`)
		case r.Method == http.MethodGet:
			fmt.Fprint(w, `[]`)
		default:
			fmt.Fprint(w, `{"id": 5}`)
		}
	}))
	t.Cleanup(srv.Close)
	c, ctx := clientOf(t, srv.URL), wait.Context(t)
	for on, kind := range map[forges.Topic]string{forges.OfIssue(7): "issues", forges.OfPull(7): "merge_requests"} {
		asked = nil
		_, e1 := c.Comments(ctx, "shop/web", on, time.Time{})
		_, e2 := c.Say(ctx, "shop/web", on, "x")
		err := errors.Join(e1, e2, c.Edit(ctx, "shop/web", on, 5, "x"), c.React(ctx, "shop/web", on, 5, forges.Seen))
		for _, path := range asked {
			if !strings.HasSuffix(path, "shop/web") && !strings.Contains(path, "/projects/3/"+kind+"/7/notes") {
				t.Errorf("%s was asked for %s", path, kind)
			}
		}
		if err != nil || len(asked) < 4 {
			t.Errorf("asked were %v, %v", asked, err)
		}
	}
	asked = nil
	if err := errors.Join(c.CloseIssue(ctx, "shop/web", 7), c.ClosePull(ctx, "shop/web", 7)); err != nil ||
		strings.Join(asked, " ") != "PUT /api/v4/projects/3/issues/7 PUT /api/v4/projects/3/merge_requests/7" {
		t.Errorf("asked were %v, %v", asked, err)
	}
}
