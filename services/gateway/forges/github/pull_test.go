package github_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
)

// commit puts a file on the branch forge/a, which begins at main where it is new.
func (w *world) commit(name string, begins bool) {
	w.t.Helper()
	where := `"branch": "forge/a"`
	if begins {
		where = `"branch": "main", "new_branch": "forge/a"`
	}
	content := base64.StdEncoding.EncodeToString([]byte(name))
	w.as("bot", "POST", "/repos/"+repo+"/contents/"+name, `{"content": "`+content+`", "message": "change", `+where+`}`)
}

// pull opens a pull request of the branch forge/a.
func (w *world) pull() (forges.Pull, interface {
	forges.Forge
	forges.Pulls
},
) {
	w.t.Helper()
	w.commit("a.txt", true)
	c := w.bot()
	p, err := c.OpenPull(wait.Context(w.t), repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B"})
	if err != nil {
		w.t.Fatal(err)
	}
	return p, c
}

// review has ada review a pull request.
func (w *world) review(number int64, event, comments string) {
	w.t.Helper()
	w.as("ada", "POST", fmt.Sprintf("/repos/%s/pulls/%d/reviews", repo, number), `{"event": "`+event+`", "comments": [`+comments+`]}`)
}

// TestMergeRefusals: what only has to be asked again is told apart from every
// other refusal, and there is no fast-forward.
func TestMergeRefusals(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	w.commit("a.txt", true)
	head := git.OID(w.head(c))
	for _, test := range []struct {
		fault forgetest.Fault
		again bool
		want  string
	}{
		{forgetest.Fault{Status: 405, Message: "Base branch was modified. Review and try the merge again."}, true, "(405): Base branch"},
		{forgetest.Fault{Status: 405, Message: "Merge already in progress"}, true, "(405): Merge"},
		{forgetest.Fault{Status: 405, Message: "Pull Request is not mergeable"}, false, "not mergeable"},
		{forgetest.Fault{Status: 409, Message: "Head branch was modified. Review and try the merge again."}, false, "(409): Head"},
	} {
		w.fake.Script(forgetest.Fault{Method: http.MethodPut, Status: test.fault.Status, Message: test.fault.Message})
		err := c.Merge(ctx, repo, 1, head, forges.Squash)
		refused, ok := errors.AsType[*forges.RefusedError](err)
		if !ok || refused.Again != test.again || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.fault, err)
		}
	}
	err := c.Merge(ctx, repo, 1, head, forges.FastForward)
	if !errors.Is(err, forges.ErrMethod) || !strings.Contains(err.Error(), "choose merge, squash or rebase") {
		t.Errorf("a fast-forward: %v", err)
	}
	if n := w.fake.Asked("PUT", "/merge"); n != 4 {
		t.Errorf("it was asked %d times to merge", n)
	}
}

// TestNamesOfBranches: no branch becomes another path or another repository.
func TestNamesOfBranches(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	for _, b := range []git.Branch{"", "../issues", "a..b", "eve:main", "a b", "-x", "a?b", "a\r\nHost: x", "refs/heads/x"} {
		for what, do := range map[string]func() error{
			"find":       func() error { _, err := c.FindPull(ctx, repo, b, "main"); return err },
			"open":       func() error { _, err := c.OpenPull(ctx, repo, "forge/a", b, forges.PullText{Title: "x"}); return err },
			"protection": func() error { _, err := c.Protection(ctx, repo, b); return err },
			"head":       func() error { _, err := c.BranchHead(ctx, repo, b); return err },
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), "branch") {
				t.Errorf("%s of %q: %v", what, b, err)
			}
		}
	}
	if err := c.SetStatus(ctx, repo, "../../user", &forges.Status{Name: "x", Outcome: forges.Passed}); err == nil {
		t.Error("a status of a path")
	}
	if n := w.fake.Asked("GET", "/api/v3") + w.fake.Asked("POST", "/api/v3"); n != 0 {
		t.Errorf("the forge was asked %d times", n)
	}
}

// TestChecks: statuses and check runs are one list, in which the worse of two
// with one name counts, and nothing unknown has passed.
func TestChecks(t *testing.T) {
	w := newWorld(t)
	p, c := w.pull()
	ctx := wait.Context(t)
	run := func(name, status, conclusion string) {
		w.fake.Hub.Check(forgetest.CheckRun{
			Repository: repo, Commit: string(p.Head), Name: name, Status: status, Conclusion: conclusion, Title: "title", Summary: "the end", App: "ci",
		})
	}
	for conclusion, name := range map[string]string{
		"success": "1", "neutral": "2", "skipped": "3", "failure": "4", "cancelled": "5", "timed_out": "6", "action_required": "7", "stale": "8", "new": "9",
	} {
		run(name, "completed", conclusion)
	}
	run("queued", "queued", "")
	run("both", "completed", "success")
	run("ours", "completed", "success")
	for name, o := range map[string]forges.Outcome{"both": forges.Failed, "ours": forges.Passed} {
		if err := c.SetStatus(ctx, repo, p.Head, &forges.Status{Name: name, Outcome: o, Text: strings.Repeat("x", 500)}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Statuses(ctx, repo, p.Head)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, s.Name+" "+string(s.Outcome))
		if s.Name == "4" && (s.Log != "the end" || s.Author.Login != "ci[bot]" || s.Author.ID != 0) {
			t.Errorf("the run is %+v", s)
		}
		// What an App says in a name of ours is its word and not ours.
		if s.Name == "ours" && s.Author.Login != "ci[bot]" {
			t.Errorf("the status of ours is %+v", s)
		}
	}
	const want = "1 passed, 2 passed, 3 passed, 4 failed, 5 pending, 6 failed, 7 pending, 8 pending, 9 failed, both failed, ours passed, queued pending"
	if strings.Join(got, ", ") != want {
		t.Errorf("the checks are %s", strings.Join(got, ", "))
	}
}

// TestRuleSets: what rulesets demand is added to the protection of the branch,
// and the stricter of both counts.
func TestRuleSets(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	hub := w.fake.Hub
	hub.RuleSet(repo, "side", "deletion", nil)
	if p, err := c.Protection(ctx, repo, "side"); err != nil || !p.Protected || p.Approvals != 0 || len(p.Statuses) > 0 {
		t.Errorf("with a rule about something else it is %+v, %v", p, err)
	}
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main", "enable_status_check": true,
		"status_check_contexts": ["a", "b*"], "required_approvals": 1, "block_admin_merge_override": true}`)
	hub.RuleSet(repo, "main", "pull_request", map[string]any{
		"required_approving_review_count": 2, "dismiss_stale_reviews_on_push": true, "required_review_thread_resolution": true,
	})
	hub.RuleSet(repo, "main", "required_status_checks", map[string]any{
		"strict_required_status_checks_policy": true, "required_status_checks": []any{map[string]any{"context": "c"}, map[string]any{"context": "a"}},
	})
	p, err := c.Protection(ctx, repo, "main")
	if err != nil || !p.Protected || p.Approvals != 2 || !p.DismissStale || !p.UpToDate || !p.AdminsToo || !p.Rejections || !p.Resolved ||
		fmt.Sprint(p.Statuses) != "[a b? c]" {
		t.Errorf("both are %+v, %v", p, err)
	}
	w.as("root1", "PUT", "/repos/"+repo+"/collaborators/bot", `{"permission": "write"}`)
	if _, err := c.Protection(ctx, repo, "main"); !errors.Is(err, forges.ErrDenied) {
		t.Errorf("without the right to see it: %v", err)
	}
}

// TestReviewsThatMove: GitHub takes reviews along to a new head where stale ones
// are not dismissed. One that is older than our first status of that head is about
// no commit that we know, as each is before there is one; a later one is about it.
func TestReviewsThatMove(t *testing.T) {
	w := newWorld(t)
	p, c := w.pull()
	ctx := wait.Context(t)
	w.fake.Hub.CarryReviews()
	verified := func(head git.OID) {
		t.Helper()
		if err := c.SetStatus(ctx, repo, head, &forges.Status{Name: "pfl-forge/verify", Outcome: forges.Passed}); err != nil {
			t.Fatal(err)
		}
	}
	verified(p.Head)
	w.review(p.Number, "APPROVED", "")
	if list, err := c.Reviews(ctx, repo, p.Number); err != nil || len(list) != 1 || list[0].Commit != p.Head || list[0].Stale || !list[0].Official {
		t.Fatalf("the review is %+v, %v", list, err)
	}
	w.commit("b.txt", false)
	now, err := c.Pull(ctx, repo, p.Number)
	if err != nil || now.Head == p.Head {
		t.Fatal(now, err)
	}
	if list, err := c.Reviews(ctx, repo, p.Number); err != nil || len(list) != 1 || list[0].Commit != "" || !list[0].Stale {
		t.Errorf("before we have written anything about the head the review is %+v, %v", list, err)
	}
	verified(now.Head)
	if list, err := c.Reviews(ctx, repo, p.Number); err != nil || len(list) != 1 || list[0].Commit != "" || !list[0].Stale {
		t.Errorf("after another change the review is %+v, %v", list, err)
	}
	w.review(p.Number, "APPROVED", "")
	if list, err := c.Reviews(ctx, repo, p.Number); err != nil || len(list) != 2 || !list[0].Dismissed || list[1].Commit != now.Head || list[1].Stale {
		t.Errorf("reviewed again they are %+v, %v", list, err)
	}
}

// TestReviewsCount: everybody may approve, and only those who may write count,
// whatever their login was; the author's association is no right.
func TestReviewsCount(t *testing.T) {
	w := newWorld(t)
	p, c := w.pull()
	ctx := wait.Context(t)
	w.as("eve", "POST", fmt.Sprintf("/repos/%s/pulls/%d/reviews", repo, p.Number), `{"event": "APPROVED"}`)
	w.review(p.Number, "APPROVED", "")
	official := func() string {
		t.Helper()
		list, err := c.Reviews(ctx, repo, p.Number)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range list {
			out = append(out, fmt.Sprint(r.Author.Login, " ", r.Official))
		}
		return strings.Join(out, ", ")
	}
	if got := official(); got != "eve false, ada true" {
		t.Errorf("who counts: %s", got)
	}
	w.as("root1", "PUT", "/repos/"+repo+"/collaborators/ada", `{"permission": "read"}`)
	if got := official(); got != "eve false, ada false" {
		t.Errorf("without the right to write: %s", got)
	}
}

// TestRemarks: remarks are with their reviews, at the line that they were made
// at, and those that are resolved are told as such.
func TestRemarks(t *testing.T) {
	w := newWorld(t)
	p, c := w.pull()
	ctx := wait.Context(t)
	w.review(p.Number, "REQUEST_CHANGES", `{"path": "a.txt", "body": "why?", "new_position": 1}, {"path": "b.txt", "body": "and this?", "new_position": 3}`)
	w.fake.Reviews(repo, p.Number, func(l reviews.List) { l.Resolve("b.txt", "ada") })
	w.commit("c.txt", false) // the lines are those of another commit now
	list, err := c.Reviews(ctx, repo, p.Number)
	if err != nil || len(list) != 1 || len(list[0].Threads) != 2 {
		t.Fatalf("the reviews are %+v, %v", list, err)
	}
	if a, b := list[0].Threads[0], list[0].Threads[1]; a.Body != "why?" || a.Line != 1 || a.Resolved || b.Path != "b.txt" || b.Line != 3 || !b.Resolved {
		t.Errorf("the remarks are %+v", list[0].Threads)
	}
}

// TestDismissed: a review that was dismissed takes the place of those before
// it, and counts for nothing itself.
func TestDismissed(t *testing.T) {
	w := newWorld(t)
	p, c := w.pull()
	ctx := wait.Context(t)
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main", "required_approvals": 1, "dismiss_stale_approvals": true}`)
	w.review(p.Number, "APPROVED", "")
	w.commit("c.txt", false)
	list, err := c.Reviews(ctx, repo, p.Number)
	if err != nil || len(list) != 1 || !list[0].Dismissed || list[0].Official || list[0].Verdict == forges.Remark {
		t.Errorf("the review is %+v, %v", list, err)
	}
}

// TestChanged: a list of several pages is read to its end, has the oldest
// change first, and no pull requests; those of ours have no others.
func TestChanged(t *testing.T) {
	w := newWorld(t)
	_, c := w.pull()
	ctx := wait.Context(t)
	for range 7 {
		w.as("eve", "POST", "/repos/"+repo+"/issues", `{"title": "T", "body": "B"}`)
	}
	w.as("eve", "PATCH", "/repos/"+repo+"/issues/3", `{"title": "U"}`)
	numbers := func(list []forges.Change, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var out []int64
		for _, c := range list {
			out = append(out, c.Number)
		}
		return fmt.Sprint(out)
	}
	if got := numbers(c.Changed(ctx, repo, time.Time{})); got != "[2 4 5 6 7 8 3]" {
		t.Errorf("changed are %s", got)
	}
	if got := numbers(c.ChangedPulls(ctx, repo, "BOT", time.Time{})); got != "[1]" {
		t.Errorf("of ours are %s", got)
	}
	w.as("bot", "PATCH", "/repos/"+repo+"/issues/1", `{"state": "closed"}`)
	if got := numbers(c.ChangedPulls(ctx, repo, "bot", time.Time{})); got != "[1]" {
		t.Errorf("closed are %s", got)
	}
	if got := numbers(c.ChangedPulls(ctx, repo, "bot", time.Now().Add(24*time.Hour))); got != "[]" {
		t.Errorf("closed since tomorrow are %s", got)
	}
}

// TestOpenAgain: an answer that was lost leads to the pull request that is
// open, also where the repository was renamed meanwhile; what GitHub refuses
// for another reason is told with that reason.
func TestOpenAgain(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.bot(), wait.Context(t)
	w.commit("a.txt", true)
	text := forges.PullText{Title: "T", Body: "B", Draft: true}
	w.fake.Script(forgetest.Fault{Method: "POST", Part: "/pulls", Status: 502, After: true})
	if _, err := c.OpenPull(ctx, repo, "forge/a", "main", text); !w.parkedUntil(err, 30*time.Second) {
		t.Fatalf("the answer was not lost: %v", err)
	}
	w.fake.Hub.Rename(repo, "root1/shop")
	p, err := c.OpenPull(ctx, repo, "forge/a", "main", text)
	if err != nil || p.Number != 1 || !p.Draft || p.Repository.Name != "root1/shop" {
		t.Errorf("opened again it is %+v, %v", p, err)
	}
	if _, err := c.OpenPull(ctx, repo, "forge/none", "main", text); err == nil || !strings.Contains(err.Error(), "Validation Failed: The head") {
		t.Errorf("a branch that is not there: %v", err)
	}
}
