package forgetest_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// fix is the change of which the trailers are looked for.
var fix = trailers.Change{Project: "shop", Intent: "fix", Task: "fix-001", Requester: "ada, bob", Approver: "grace"}

// fixed is the message of a commit as an implementer pushes it.
var fixed = "Fix it\n\nWhy it was wrong.\n\nSee: x\n" + strings.Join(fix.Lines(), "\n")

// change commits a file on a new branch with the message of the change fix, and
// opens a pull request of it.
func (w *world) change(branch git.Branch) (number int64, head git.OID) {
	w.t.Helper()
	w.as("bot", "POST", "/repos/"+w.repo+"/contents/"+string(branch)+".txt", object{
		"content": base64.StdEncoding.EncodeToString([]byte("x\n")), "message": fixed, "branch": "main", "new_branch": branch,
	})
	c, ctx := w.bot(), wait.Context(w.t)
	head, err := c.BranchHead(ctx, w.repo, branch)
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := c.OpenPull(ctx, w.repo, branch, "main", forges.PullText{Title: "Fix it, says the pull request", Body: "Its text."})
	if err != nil {
		w.t.Fatal(err)
	}
	return p.Number, head
}

// TestMergedMessages: by whichever method a change is merged, on the tip or on one that
// moved, the commit on main has the message of its head with all trailers, and the number
// of the pull request where the forge has made a commit; on the fake and on a real Gitea.
func TestMergedMessages(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		methods := []forges.Method{forges.FastForward, forges.MergeCommit, forges.Squash, forges.Rebase}
		numbers, heads := map[forges.Method]int64{}, map[forges.Method]git.OID{}
		for i, m := range methods { // all of them before any is merged
			numbers[m], heads[m] = w.change(git.Branch(fmt.Sprint("fix", i)))
		}
		for i, m := range methods {
			if errors.Is(c.Merges(ctx, w.repo, m), forges.ErrMethod) {
				continue
			}
			if w.any && i > 0 { // a project of GitLab that makes no merge commits merges nothing that is behind
				numbers[m], heads[m] = w.change(git.Branch(fmt.Sprint("later", i)))
			}
			n := numbers[m]
			if err := merge(t, c, w, n, heads[m], m); err != nil {
				t.Fatalf("%s: %v", m, err)
			}
			p, err := c.Pull(ctx, w.repo, n)
			if err != nil || p.State != forges.Merged || p.BaseHead != p.Merge {
				t.Fatalf("%s: %+v, %v", m, p, err)
			}
			message, err := c.Message(ctx, w.repo, p.Merge)
			if err != nil {
				t.Fatalf("%s: %v", m, err)
			}
			if diff := cmp.Diff([]trailers.Change{fix}, trailers.Read(message)); diff != "" {
				t.Errorf("%s: %s in %q", m, diff, message)
			}
			title, _, _ := strings.Cut(message, "\n")
			ours := title == fmt.Sprintf("Fix it (#%d)", n) || title == fmt.Sprintf("Fix it (!%d)", n)
			if made := m == forges.MergeCommit || m == forges.Squash; ours != made || !made && title != "Fix it" || !strings.Contains(message, "Why it was wrong.") {
				t.Errorf("%s: the message is %q", m, message)
			}
		}
		if _, err := c.Message(ctx, w.repo, git.OID(strings.Repeat("0", 39)+"1")); err == nil {
			t.Error("a commit that is not there has a message")
		}
	})
}

// TestMergedByAPress: whoever asks Gitea by its API, and names no message, gets a title of Gitea's
// own and none of our trailers. Those who have to know that a change was merged cannot go by them.
func TestMergedByAPress(t *testing.T) {
	t.Parallel()
	onGiteas(t, func(t *testing.T, w *world, _ *forgetest.Fake) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		for do, want := range map[string]string{
			"squash": "Fix it, says the pull request (#%d)", "merge": "Merge pull request 'Fix it, says the pull request' (#%d) from fix-merge into main",
		} {
			n, _ := w.change(git.Branch("fix-" + do))
			wait.Until(t, "the forge has computed whether it can be merged", func() bool {
				status, _ := w.person("ada").Tries(t, "POST", fmt.Sprintf("/repos/%s/pulls/%d/merge", w.repo, n), object{"do": do})
				return status == http.StatusOK
			})
			p, err := c.Pull(ctx, w.repo, n)
			if err != nil || p.Merge == "" {
				t.Fatalf("%+v, %v", p, err)
			}
			message, err := c.Message(ctx, w.repo, p.Merge)
			title, _, _ := strings.Cut(message, "\n")
			if err != nil || title != fmt.Sprintf(want, n) || len(trailers.Read(message)) > 0 {
				t.Errorf("%s: the message is %q, %v", do, message, err)
			}
		}
	})
}
