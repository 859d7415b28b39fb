package forgetest_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// commit puts a file on a branch that is there, or that begins at main, as the
// account bot, and returns the commit.
func (w *world) commit(branch, file, content string, begins bool) git.OID {
	w.t.Helper()
	in := object{"content": base64.StdEncoding.EncodeToString([]byte(content)), "message": "change " + file, "branch": branch}
	if begins {
		in["branch"], in["new_branch"] = "main", branch
	}
	commit := w.as("bot", "POST", "/repos/"+w.repo+"/contents/"+file, in)["commit"].(map[string]any)
	return git.OID(commit["sha"].(string))
}

// protect has main demand a status, an approval and that the base is in the head.
func (w *world) protect() {
	w.t.Helper()
	w.as("root1", "POST", "/repos/"+w.repo+"/branch_protections", object{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"pfl-forge/verify"}, "required_approvals": 1,
		"block_on_outdated_branch": true, "dismiss_stale_approvals": true, "block_on_rejected_reviews": true,
	})
}

// review writes a review as a person.
func (w *world) review(user string, number int64, event, text string, comments ...object) {
	w.t.Helper()
	w.as(user, "POST", fmt.Sprintf("/repos/%s/pulls/%d/reviews", w.repo, number), object{"event": event, "body": text, "comments": comments})
}

// merge merges as soon as the forge has computed whether it can.
func merge(t *testing.T, c pulls.Forge, w *world, number int64, head git.OID, m forges.Method) (err error) {
	t.Helper()
	wait.Until(t, "the forge has computed whether it can be merged", func() bool {
		err = c.Merge(wait.Context(t), w.repo, number, head, m)
		refused, ok := errors.AsType[*forges.RefusedError](err)
		return !ok || !refused.Again
	})
	return err
}

// TestPullRequests: a pull request is opened once, brought up to date, reviewed, and merged as the
// very commit that was asked for, on a branch that is protected; on the fake and on a real Gitea.
func TestPullRequests(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		w.protect()
		if p, err := c.FindPull(ctx, w.repo, "forge/a", "main"); !isNotFound(err) {
			t.Fatalf("before it is there it is %+v, %v", p, err)
		}
		head := w.commit("forge/a", "a.txt", "a\n", true)
		text := forges.PullText{Title: "WIP: from an agent", Body: "Why\n\nand how", Labels: []string{"forge"}}
		p, err := c.OpenPull(ctx, w.repo, "forge/a", "main", text)
		if err != nil || p.State != forges.Open || p.Head != head || p.Branch != "forge/a" || p.Base != "main" || p.Author.Login != "bot" {
			t.Fatalf("opened is %+v, %v", p, err)
		}
		// A title that an agent has made look like a draft's is none.
		if p.Draft || p.Title != text.Title || p.Body != text.Body || len(p.Labels) != 1 || p.Labels[0] != "forge" || p.Repository.Name != w.repo {
			t.Errorf("it says %+v", p)
		}
		again, err := c.OpenPull(ctx, w.repo, "forge/a", "main", text)
		if err != nil || again.Number != p.Number {
			t.Errorf("opened again is %+v, %v", again, err)
		}
		if _, err := c.Issue(ctx, w.repo, p.Number); !isNotFound(err) {
			t.Errorf("a pull request as an issue: %v", err)
		}
		for _, text := range []forges.PullText{{Title: "Another", Draft: true}, {Title: "And another", Body: "x"}} {
			if err := c.EditPull(ctx, w.repo, p.Number, text); err != nil {
				t.Fatal(err)
			}
			if p, err = c.Pull(ctx, w.repo, p.Number); err != nil || p.Title != text.Title || p.Body != text.Body || p.Draft != text.Draft {
				t.Errorf("edited it is %+v, %v", p, err)
			}
		}
		if err := c.EditPull(ctx, w.repo, p.Number, forges.PullText{Title: "x", Labels: []string{"no such"}}); !errors.Is(err, forges.ErrLabel) {
			t.Errorf("a label that is not there: %v", err)
		}
		testReviews(t, w, c, p.Number, head)
		testMerge(t, w, c, p.Number, head)
	})
}

// testReviews is the part of TestPullRequests that is about what people and checks say.
func testReviews(t *testing.T, w *world, c pulls.Forge, n int64, head git.OID) {
	t.Helper()
	ctx := wait.Context(t)
	for _, s := range []forges.Status{
		{Name: "pfl-forge/verify", Outcome: forges.Pending},
		{Name: "pfl-forge/verify", Outcome: forges.Passed, Text: strings.Repeat("verified ", 100), URL: "https://forge.example.com/1"},
		{Name: "ci/unit", Outcome: forges.Failed, Text: "1 failed"},
	} {
		if err := c.SetStatus(ctx, w.repo, head, &s); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.Statuses(ctx, w.repo, head)
	if err != nil || len(list) != 2 || list[0].Name != "ci/unit" || list[0].Outcome != forges.Failed || list[0].Text != "1 failed" ||
		list[1].Name != "pfl-forge/verify" || list[1].Outcome != forges.Passed || list[1].URL != "https://forge.example.com/1" || list[1].Author.Login != "bot" {
		t.Errorf("the statuses are %+v, %v", list, err)
	}
	w.review("eve", n, "APPROVED", "looks good to a stranger")
	w.review("ada", n, "REQUEST_CHANGES", "please explain", object{"path": "a.txt", "body": "why this?", "new_position": 1})
	reviews, err := c.Reviews(ctx, w.repo, n)
	if err != nil || len(reviews) != 2 {
		t.Fatalf("the reviews are %+v, %v", reviews, err)
	}
	if r := reviews[0]; r.Author.Login != "eve" || r.Author.ID <= 0 || r.Verdict != forges.Approved || r.Official || r.Commit != head || len(r.Threads) > 0 {
		t.Errorf("the stranger's is %+v", r)
	}
	if r := reviews[1]; r.Author.Login != "ada" || r.Verdict != forges.ChangesRequested || !r.Official || r.Dismissed || r.Body != "please explain" ||
		len(r.Threads) != 1 || r.Threads[0].Path != "a.txt" || r.Threads[0].Line != 1 || r.Threads[0].Body != "why this?" || r.Threads[0].Resolved {
		t.Errorf("ada's is %+v", r)
	}
	// A pull request has the comments that an issue has.
	ours, err := c.Say(ctx, w.repo, forges.OfPull(n), "a status")
	if err != nil || c.Edit(ctx, w.repo, forges.OfPull(n), ours.ID, "another status") != nil {
		t.Errorf("we said %+v, %v", ours, err)
	}
	if list, err := c.Comments(ctx, w.repo, forges.OfPull(n), time.Time{}); err != nil || len(list) != map[bool]int{false: 1, true: 3}[w.summaries] ||
		list[len(list)-1].Body != "another status" || list[len(list)-1].Author.Login != "bot" {
		t.Errorf("the comments are %+v, %v", list, err)
	}
	if err := merge(t, c, w, n, head, w.method); !isRefused(err) {
		t.Errorf("merged although a stranger alone approves: %v", err)
	}
	w.review("ada", n, "APPROVED", "I see")
	if reviews, err = c.Reviews(ctx, w.repo, n); err != nil || len(reviews) != 3 || !reviews[1].Dismissed || reviews[2].Verdict != forges.Approved {
		t.Errorf("after ada's second one the reviews are %+v, %v", reviews, err)
	}
}

// isRefused reports whether the forge has refused something for a reason that lasts.
func isRefused(err error) bool {
	refused, ok := errors.AsType[*forges.RefusedError](err)
	return ok && !refused.Again
}

// testMerge is the part of TestPullRequests that is about merging.
func testMerge(t *testing.T, w *world, c pulls.Forge, n int64, head git.OID) {
	t.Helper()
	ctx := wait.Context(t)
	before, err := c.Pull(ctx, w.repo, n)
	if err != nil || isRefused(merge(t, c, w, n, before.BaseHead, w.method)) == false {
		t.Fatalf("merged although the head is another one; %v", err)
	}
	if err := merge(t, c, w, n, "", w.method); err == nil {
		t.Error("merged without saying which head")
	}
	if err := merge(t, c, w, n, head, "octopus"); err == nil || !strings.Contains(err.Error(), "method") {
		t.Errorf("merged by a method that is none: %v", err)
	}
	if err := merge(t, c, w, n, head, w.method); err != nil {
		t.Fatalf("merge: %v", err)
	}
	p, err := c.Pull(ctx, w.repo, n)
	if err != nil || p.State != forges.Merged || p.Merge == "" || p.MergedBy.Login != "bot" || p.BaseHead != p.Merge ||
		(p.Merge == head) != (w.method == forges.FastForward) { // only that one brings the very commit
		t.Errorf("merged it is %+v, %v", p, err)
	}
	if err := merge(t, c, w, n, head, w.method); !isRefused(err) {
		t.Errorf("merged again: %v", err)
	}
	if p, err := c.FindPull(ctx, w.repo, "forge/a", "main"); err != nil || p.Number != n || p.State != forges.Merged {
		t.Errorf("found is %+v, %v", p, err)
	}
}

// TestPullsOfOthers: what people do with a pull request is seen: closed, opened again, its branch
// changed; an approval of another change does not stay, and what is behind its base is not merged.
func TestPullsOfOthers(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		head := w.commit("forge/a", "a.txt", "a\n", true)
		w.commit("side/b", "b.txt", "b\n", true)
		w.protect()
		if p, err := c.Protection(ctx, w.repo, "main"); err != nil || !p.Protected || w.any == slices.Contains(p.Statuses, "pfl-forge/verify") ||
			!p.UpToDate || !p.DismissStale || p.Approvals != 1 || p.AdminsToo {
			t.Errorf("the protection of main is %+v, %v", p, err)
		}
		if p, err := c.Protection(ctx, w.repo, "forge/a"); err != nil || p.Protected {
			t.Errorf("the protection of the branch is %+v, %v", p, err)
		}
		p, err := c.OpenPull(ctx, w.repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B"})
		if err != nil {
			t.Fatal(err)
		}
		state := fmt.Sprintf("/repos/%s/issues/%d", w.repo, p.Number)
		w.as("ada", "PATCH", state, object{"state": "closed"})
		if p, err = c.FindPull(ctx, w.repo, "forge/a", "main"); err != nil || p.State != forges.Closed || p.ClosedBy.Login != "ada" {
			t.Errorf("closed it is %+v, %v", p, err)
		}
		if err := merge(t, c, w, p.Number, head, w.method); err == nil {
			t.Error("merged although it is closed")
		}
		for range 2 { // again changes nothing
			if err := c.ReopenPull(ctx, w.repo, p.Number); err != nil {
				t.Errorf("open it again: %v", err)
			}
		}
		if p, err = c.Pull(ctx, w.repo, p.Number); err != nil || p.State != forges.Open {
			t.Errorf("opened again it is %+v, %v", p, err)
		}
		w.review("ada", p.Number, "APPROVED", "")
		if changed, err := c.ChangedPulls(ctx, w.repo, "bot", time.Now().Add(24*time.Hour)); err != nil || len(changed) != 1 || changed[0].Number != p.Number {
			t.Errorf("those that are open are %+v, %v", changed, err)
		}
		if changed, err := c.ChangedPulls(ctx, w.repo, "eve", time.Time{}); err != nil || len(changed) != 0 {
			t.Errorf("those of eve are %+v, %v", changed, err)
		}
		if got, err := c.BranchHead(ctx, w.repo, "forge/a"); err != nil || got != head {
			t.Errorf("the branch is at %s, %v", got, err)
		}
		if behind, err := c.Behind(ctx, w.repo, head, p.BaseHead); err != nil || behind {
			t.Errorf("behind its own base: %v, %v", behind, err)
		}
		if behind, err := c.Behind(ctx, w.repo, head, w.commit("side/b", "d.txt", "d\n", false)); err != nil || !behind {
			t.Errorf("not behind another branch: %v, %v", behind, err)
		}
		later := w.commit("forge/a", "c.txt", "c\n", false)
		wait.Until(t, "the forge sees what was pushed", func() bool {
			p, err = c.Pull(ctx, w.repo, p.Number)
			reviews, rerr := c.Reviews(ctx, w.repo, p.Number)
			return err == nil && rerr == nil && p.Head == later && len(reviews) == 1 && (reviews[0].Stale || reviews[0].Dismissed)
		})
	})
}
