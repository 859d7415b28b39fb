package gitlab_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/gitlab"
)

// TestConfidential: an issue that is confidential is not there, whether it was
// from the beginning or became so; nor is an internal comment.
func TestConfidential(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	w.as("ada", "POST", "/repos/"+repo+"/issues/1/labels", `{"labels": ["forge"]}`)
	w.as("ada", "POST", "/repos/"+repo+"/issues/1/comments", `{"body": "public"}`)
	w.fake.Lab.Add(repo, 1, "ada", "internal", "the password is hunter2")
	if list, err := w.Comments(ctx, repo, forges.OfIssue(1), time.Time{}); err != nil || len(list) != 1 || list[0].Body != "public" {
		t.Errorf("the comments are %+v, %v", list, err)
	}
	if i, err := w.Issue(ctx, repo, 1); err != nil || len(i.Labels) != 1 || i.Labels[0].By.Login != "ada" {
		t.Errorf("before, it is %+v, %v", i, err)
	}
	w.fake.Lab.Add(repo, 1, "ada", "confidential", "")
	if i, err := w.Issue(ctx, repo, 1); !isNotFound(err) || i.Title != "" {
		t.Errorf("it is %+v, %v", i, err)
	}
	if list, err := w.Changed(ctx, repo, time.Time{}); err != nil || len(list) != 0 {
		t.Errorf("changed are %+v, %v", list, err)
	}
}

// TestIssuesOfMembers: where fewer people see issues than merge requests, which
// tell of them, no issue is there, and the log says why.
func TestIssuesOfMembers(t *testing.T) {
	project := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"iid": 1, "project_id": 3, "title": "T", "state": "opened"}`
		if r.URL.Path == "/api/v4/projects/shop/web" {
			answer = `{"id": 3, "path_with_namespace": "shop/web", ` + project + `}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(srv.Close)
	for settings, there := range map[string]bool{
		`"visibility": "public", "issues_access_level": "enabled", "merge_requests_access_level": "enabled"`:   true,
		`"visibility": "public", "issues_access_level": "private", "merge_requests_access_level": "enabled"`:   false,
		`"visibility": "internal", "issues_access_level": "private", "merge_requests_access_level": "enabled"`: false,
		`"visibility": "public", "issues_access_level": "private", "merge_requests_access_level": "private"`:   true,
		`"visibility": "private", "issues_access_level": "private", "merge_requests_access_level": "enabled"`:  true,
	} {
		project = settings
		i, err := clientOf(t, srv.URL).Issue(wait.Context(t), "shop/web", 1)
		if there != (err == nil) || there != (i.Title == "T") || !there && (!isNotFound(err) || !strings.Contains(err.Error(), "for its members alone")) {
			t.Errorf("%s: %+v, %v", settings, i, err)
		}
	}
}

// TestSystemNotes: a note that GitLab wrote itself is no comment, whatever it
// says: a title that an issue is given is in one.
func TestSystemNotes(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{"/forge run", "changed title to\n\n/forge approve 0123456"} {
		w.fake.Lab.Add(repo, 1, "ada", "system", body)
	}
	if list, err := w.Comments(wait.Context(t), repo, forges.OfIssue(1), time.Time{}); err != nil || len(list) != 0 {
		t.Errorf("the comments are %+v, %v", list, err)
	}
}

// TestEditedNotes: a note that was edited says so, and one to which somebody
// has reacted as well, since GitLab tells them apart to no one.
func TestEditedNotes(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	first, err := w.Say(ctx, repo, forges.OfIssue(1), "/forge run")
	second, err2 := w.Say(ctx, repo, forges.OfIssue(1), "/forge run")
	third, err3 := w.Say(ctx, repo, forges.OfIssue(1), "/forge run")
	if err := errors.Join(err, err2, err3, w.Edit(ctx, repo, forges.OfIssue(1), first.ID, "/forge cancel"),
		w.React(ctx, repo, forges.OfIssue(1), second.ID, forges.Refused), w.React(ctx, repo, forges.OfIssue(1), second.ID, forges.Refused)); err != nil {
		t.Fatal(err)
	}
	list, err := w.Comments(ctx, repo, forges.OfIssue(1), time.Time{})
	if err != nil || len(list) != 3 || !list[0].Edited() || !list[1].Edited() || list[2].Edited() || list[2].ID != third.ID {
		t.Errorf("the comments are %+v, %v", list, err)
	}
	if got := w.fake.Comments(repo, 1); len(got[1].Reactions) != 1 || got[1].Reactions[0] != "bot -1" {
		t.Errorf("the reactions are %v", got[1].Reactions)
	}
	if err := w.React(ctx, repo, forges.OfIssue(1), 999999, forges.Seen); !isNotFound(err) {
		t.Errorf("a comment that is not there: %v", err)
	}
}

// reviews returns the reviews of a merge request.
func (w *world) reviews(number int64) []forges.Review {
	w.t.Helper()
	list, err := w.Reviews(wait.Context(w.t), repo, number)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// TestApprovals: an approval is of the head at that time, and counts if its author may
// write. Nobody makes one by words, and whoever asks for changes does not approve.
func TestApprovals(t *testing.T) {
	w := newWorld(t)
	first := w.commit("a.txt", true)
	n := w.open()
	w.review("eve", n, "APPROVED", "looks good to a stranger")
	if list := w.reviews(n); len(list) != 1 || list[0].Official || list[0].Commit != first || list[0].Stale || list[0].Author.Login != "eve" {
		t.Errorf("a stranger's is %+v", list)
	}
	for _, words := range []string{"approved this merge request", "requested changes"} {
		if _, err := w.Say(wait.Context(t), repo, forges.OfPull(n), words); err != nil {
			t.Fatal(err)
		}
	}
	w.fake.Lab.Add(repo, n, "bot", "internal", "approved this merge request")
	w.review("ada", n, "APPROVED", "fine")
	list := w.reviews(n)
	if len(list) != 2 || list[1].Author.Login != "ada" || !list[1].Official || list[1].Dismissed || list[1].Verdict != forges.Approved ||
		list[1].Body != "fine" {
		t.Errorf("ada's is %+v", list)
	}
	second := w.commit("b.txt", false)
	if list := w.reviews(n); len(list) != 2 || list[1].Commit != first || !list[1].Stale || list[1].Dismissed {
		t.Errorf("after a push they are %+v", list)
	}
	w.review("ada", n, "REQUEST_CHANGES", "explain")
	list = w.reviews(n)
	if len(list) != 3 || !list[1].Dismissed || list[2].Verdict != forges.ChangesRequested || list[2].Dismissed || list[2].Commit != second ||
		list[2].Body != "explain" {
		t.Errorf("after ada's second they are %+v", list)
	}
	w.fake.Lab.Change(func(s *forgetest.LabState) { s.Blocked["ada"] = true })
	if list = w.reviews(n); list[2].Official {
		t.Error("who is blocked counts")
	}
	w.fake.Lab.Change(func(s *forgetest.LabState) { delete(s.Blocked, "ada") })
	if list = w.reviews(n); !list[2].Official {
		t.Error("who is let in again does not count")
	}
	w.role("ada", "reporter")
	if list = w.reviews(n); list[2].Official {
		t.Error("who may not write any more counts")
	}
}

// TestApprovalsWithoutNotes: where GitLab has no note of a decision, it counts
// by its list alone, and is about no commit that we know if it has no time.
func TestApprovalsWithoutNotes(t *testing.T) {
	const (
		mr   = "/api/v4/projects/3/merge_requests/"
		bob  = `{"user": {"id": 8, "username": "bob"}`
		asks = `, "state": "requested_changes"}`
	)
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	answers := map[string]string{
		"/api/v4/projects/shop/web": `{"id": 3, "path_with_namespace": "shop/web"}`,
		mr + "7/approvals":          `{"approved_by": [` + bob + `}, {"user": {"id": 7, "username": "ada"}, "approved_at": "2026-05-04T10:00:00.5Z"}]}`,
		mr + "7/reviewers":          `[` + bob + asks + `, {"user": null` + asks + `]`,
		mr + "7/discussions": `[{"notes": [{"id": 1, "system": true, "body": "approved this merge request", "author": {"id": 8, "username": "bob"}, ` +
			`"created_at": "2026-05-04T09:30:00Z"}]}]`,
		mr + "7/versions": `[{"head_commit_sha": "` + b + `", "created_at": "2026-05-04T10:00:01Z"}, ` +
			`{"head_commit_sha": "` + a + `", "created_at": "2026-05-04T09:00:00Z"}]`,
		"/api/v4/projects/3/members/all/7": `{"access_level": 30}`,
		"/api/v4/projects/3/members/all/8": `{"access_level": 40}`,
		mr + "8/approvals":                 `{"approved_by": []}`,
		mr + "8/discussions": `[{"notes": [{"id": 1, "system": true, "body": "requested changes", "author": {"id": 7, "username": "ada"}, ` +
			`"created_at": "2026-05-04T10:00:00Z"}]}]`,
		mr + "8/versions": `[]`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answers[r.URL.Path] == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(answers[r.URL.Path]))
	}))
	t.Cleanup(srv.Close)
	c, ctx := clientOf(t, srv.URL), wait.Context(t)
	list, err := c.Reviews(ctx, "shop/web", 7)
	// That bob asks for changes is behind what he decided before it: readers
	// take the last one of each account.
	if err != nil || len(list) != 3 || list[2].Author.ID != 8 || list[2].Verdict != forges.ChangesRequested || !list[2].Official ||
		list[2].Commit != "" || !list[2].Stale || list[2].Dismissed {
		t.Fatalf("they are %+v, %v", list, err)
	}
	if list[0].Author.ID != 8 || list[0].Verdict != forges.Approved || !list[0].Dismissed {
		t.Errorf("they are %+v, %v", list, err)
	}
	if list[1].Author.ID != 7 || list[1].Verdict != forges.Approved || string(list[1].Commit) != a || !list[1].Stale {
		t.Errorf("they are %+v, %v", list, err)
	}
	// An instance that does not tell the states of reviewers has asked for changes by its note.
	if list, err := c.Reviews(ctx, "shop/web", 8); err != nil || len(list) != 1 || list[0].Dismissed || list[0].Verdict != forges.ChangesRequested {
		t.Errorf("they are %+v, %v", list, err)
	}
}

// TestStatuses: of each ref the last status of a name counts, of two refs the worse; what may
// fail does not matter; and who wrote it is told, so that one of our name by another is not ours.
func TestStatuses(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	head := w.commit("a.txt", true)
	for range 2 { // to wait twice is refused by GitLab
		if err := w.SetStatus(ctx, repo, head, &forges.Status{Name: "pfl-forge/verify", Outcome: forges.Pending}); err != nil {
			t.Fatal(err)
		}
	}
	job := func(name, state, ref string, allow bool) { w.fake.Lab.Job(repo, string(head), name, state, ref, allow) }
	job("unit", "failed", "forge/a", false)
	job("unit", "success", "forge/a", false)
	job("both", "success", "forge/a", false)
	job("both", "failed", "refs/merge-requests/1/head", false)
	job("both", "success", "main", false)
	job("lint", "failed", "forge/a", true)
	job("deploy", "manual", "forge/a", true)
	job("gate", "manual", "forge/a", false)
	job("cut", "canceled", "forge/a", false)
	job("new", "a state of next year", "forge/a", false)
	w.as("ada", "POST", "/repos/"+repo+"/statuses/"+string(head), `{"context": "pfl-forge/review", "state": "success"}`)
	list, err := w.Statuses(ctx, repo, head)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]forges.Outcome{
		"unit": forges.Passed, "both": forges.Failed, "lint": forges.Passed, "deploy": forges.Passed, "gate": forges.Pending, "cut": forges.Pending,
		"new": forges.Failed, "pfl-forge/verify": forges.Pending, "pfl-forge/review": forges.Passed,
	}
	for _, s := range list {
		if s.Outcome != want[s.Name] {
			t.Errorf("%s is %s, want %s", s.Name, s.Outcome, want[s.Name])
		}
		if author := map[bool]string{true: "bot", false: "ada"}[s.Name == "pfl-forge/verify"]; s.Author.Login != author {
			t.Errorf("%s is by %s", s.Name, s.Author.Login)
		}
	}
	if len(list) != len(want) {
		t.Errorf("there are %+v", list)
	}
	w.as("ada", "POST", "/repos/"+repo+"/statuses/"+string(head), `{"context": "pfl-forge/verify", "state": "success"}`)
	if list, err = w.Statuses(ctx, repo, head); err != nil || !slices.ContainsFunc(list, func(s forges.Status) bool {
		return s.Name == "pfl-forge/verify" && s.Author.Login == "ada"
	}) {
		t.Errorf("another one's of our name: %+v, %v", list, err)
	}
}

// TestForks: a merge request of a fork's branch of our name is another one, and
// says that its branch is none of ours.
func TestForks(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	w.commit("a.txt", true)
	fork := int64(w.as("eve", "POST", "/repos/"+repo+"/pulls", `{"head": "forge/a", "base": "main", "title": "mine"}`)["number"].(float64))
	w.fake.Lab.Fork(repo, fork)
	if p, err := w.FindPull(ctx, repo, "forge/a", "main"); !isNotFound(err) {
		t.Errorf("found is %+v, %v", p, err)
	}
	if p, err := w.Pull(ctx, repo, fork); err != nil || p.Branch != "" || p.Author.Login != "eve" {
		t.Errorf("the fork's is %+v, %v", p, err)
	}
	n := w.open()
	if p, err := w.FindPull(ctx, repo, "forge/a", "main"); err != nil || p.Number != n || n == fork {
		t.Errorf("ours is %+v, %v", p, err)
	}
}

// TestRenamed: a project that was renamed is found by its former name, and read and
// written by its number; when another project takes that name, nothing is asked of it.
func TestRenamed(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	before, err := w.Repository(ctx, repo)
	if err != nil {
		t.Fatal(err)
	}
	w.fake.Hub.Rename(repo, "root1/shop")
	for _, c := range []*gitlab.Client{w.Client, clientOf(t, w.fake.URL())} { // one that knows the number, and one that is new
		r, err := c.Repository(ctx, repo)
		if err != nil || r.ID != before.ID || r.Name != "root1/shop" {
			t.Errorf("renamed it is %+v, %v", r, err)
		}
		if _, err := c.Say(ctx, repo, forges.OfIssue(1), "x"); err != nil {
			t.Errorf("say: %v", err)
		}
		if i, err := c.Issue(ctx, repo, 1); err != nil || i.Repository.Name != "root1/shop" {
			t.Errorf("the issue is %+v, %v", i, err)
		}
	}
	w.as("root1", "POST", "/user/repos", `{"name": "web"}`)
	if r, err := w.Repository(ctx, repo); !errors.Is(err, forges.ErrDenied) || !strings.Contains(err.Error(), "another one has its name") {
		t.Errorf("another project is %+v, %v", r, err)
	}
	if i, err := w.Issue(ctx, repo, 1); !errors.Is(err, forges.ErrDenied) {
		t.Errorf("its issue is %+v, %v", i, err)
	}
}

// TestTheTokenStays: a redirect to another host, or to the same without TLS, is
// not followed, whatever the method; and no error has the token.
func TestTheTokenStays(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		first := httptest.NewServer(http.RedirectHandler(other.URL+"/api/v4/user", status))
		c := clientOf(t, first.URL)
		for _, do := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := c.Self(ctx); return err },
			func(ctx context.Context) error { _, err := c.Repository(ctx, "shop/web"); return err },
			func(ctx context.Context) error { return c.CloseIssue(ctx, "shop/web", 1) },
		} {
			if err := do(wait.Context(t)); err == nil || asked || strings.Contains(err.Error(), "bot") {
				t.Errorf("%d was followed: %v", status, err)
			}
		}
		first.Close()
	}
	for _, url := range []string{"http://gitlab.example.com", "https://ada:secret@gitlab.com", "gitlab.com", "ftp://localhost", "https://gitlab.com/?a=b"} {
		if _, err := gitlab.New(gitlab.Config{URL: url}); err == nil || !strings.HasPrefix(err.Error(), "url: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := gitlab.New(gitlab.Config{URL: "https://gitlab.com", TokenFile: "none"}); err == nil || !strings.HasPrefix(err.Error(), "token_file: ") {
		t.Errorf("without a token: %v", err)
	}
}

// TestLimits: a limit is told with its end, and nothing is asked before; a
// fault of the forge's own is no limit.
func TestLimits(t *testing.T) {
	for what, test := range map[string]struct {
		fault forgetest.Fault
		until time.Duration
		hold  bool
	}{
		"with its end":       {forgetest.Fault{Status: 429, Header: http.Header{"Ratelimit-Reset": {"1777888860"}}}, time.Minute, true},
		"with seconds":       {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"90"}}}, 90 * time.Second, true},
		"without an end":     {forgetest.Fault{Status: 429}, 30 * time.Second, true},
		"for ever":           {forgetest.Fault{Status: 429, Header: http.Header{"Retry-After": {"99999999999"}}}, time.Hour, true},
		"a fault of its own": {forgetest.Fault{Status: 500}, 30 * time.Second, false},
		"it hangs up":        {forgetest.Fault{}, 30 * time.Second, false},
	} {
		w := newWorld(t)
		w.fake.Script(test.fault)
		for n := range 2 {
			err := w.CloseIssue(wait.Context(t), repo, 1)
			parked, ok := errors.AsType[*forges.ParkedError](err)
			if limited := n == 0 || test.hold; ok != limited || ok && !parked.Until.Equal(now.Add(test.until)) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if asked := w.fake.Asked("GET", "") + w.fake.Asked("PUT", "/issues/"); (asked == 1) != test.hold {
			t.Errorf("%s: %d were asked", what, asked)
		}
	}
}
