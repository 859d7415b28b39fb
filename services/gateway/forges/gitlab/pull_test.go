package gitlab_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestMethods: how a project merges is its setting, and a method that it has
// not is told before anything is merged.
func TestMethods(t *testing.T) {
	for _, test := range []struct {
		set  forgetest.Project
		has  string
		want map[forges.Method]bool
	}{
		{forgetest.Project{Method: "ff"}, "choose fast-forward or squash", map[forges.Method]bool{forges.FastForward: true, forges.Squash: true}},
		{forgetest.Project{Method: "merge"}, "choose merge or squash", map[forges.Method]bool{forges.MergeCommit: true, forges.Squash: true}},
		{forgetest.Project{Method: "rebase_merge", Squash: "never"}, "choose merge,", map[forges.Method]bool{forges.MergeCommit: true}},
		{forgetest.Project{Method: "merge", Squash: "always"}, "choose squash,", map[forges.Method]bool{forges.Squash: true}},
	} {
		w := newWorld(t)
		head := w.commit("a.txt", true)
		n := w.open()
		w.fake.Lab.Set(repo, test.set)
		for _, m := range []forges.Method{forges.FastForward, forges.MergeCommit, forges.Squash, forges.Rebase, "octopus", ""} {
			err := w.Merges(wait.Context(t), repo, m)
			if test.want[m] != (err == nil) || err != nil && (!errors.Is(err, forges.ErrMethod) || !strings.Contains(err.Error(), test.has)) {
				t.Errorf("%+v: %s: %v", test.set, m, err)
			}
			if !test.want[m] && !errors.Is(w.Merge(wait.Context(t), repo, n, head, m), forges.ErrMethod) {
				t.Errorf("%+v: merged by %q", test.set, m)
			}
		}
		if p, err := w.Pull(wait.Context(t), repo, n); err != nil || p.State != forges.Open {
			t.Errorf("%+v: it is %+v, %v", test.set, p, err)
		}
	}
}

// TestMerge: the very commit that was asked for is merged, or none: a head that moved,
// a draft, pipelines, remarks and approvals that are missing are refused, with the
// reason that the merge request has; and what is not computed yet is to be asked again.
func TestMerge(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	head := w.commit("a.txt", true)
	n := w.open()
	refused := func(what, reason string, again bool) {
		t.Helper()
		err := w.Merge(ctx, repo, n, head, forges.FastForward)
		if e, ok := errors.AsType[*forges.RefusedError](err); !ok || e.Again != again || !strings.Contains(e.Reason, reason) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.fake.Lab.Change(func(s *forgetest.LabState) { s.Computing = 1 })
	refused("not computed", "", true)
	if err := w.EditPull(ctx, repo, n, forges.PullText{Title: "T", Draft: true}); err != nil {
		t.Fatal(err)
	}
	refused("a draft", "draft status", false)
	if err := w.EditPull(ctx, repo, n, forges.PullText{Title: "Draft: T"}); err != nil { // an agent's title
		t.Fatal(err)
	}
	w.fake.Lab.Set(repo, forgetest.Project{Pipelines: true, Resolved: true})
	refused("no pipeline", "ci must pass", false)
	w.fake.Lab.Job(repo, string(head), "unit", "success", "forge/a", false)
	w.as("ada", "POST", "/repos/"+repo+"/pulls/2/reviews", `{"event": "COMMENT", "comments": [{"path": "a.txt", "body": "why?", "new_position": 1}]}`)
	refused("a remark", "discussions not resolved", false)
	w.fake.Reviews(repo, n, func(l reviews.List) { l.Resolve("a.txt", "ada") })
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main", "required_approvals": 1}`)
	refused("no approval", "not approved", false)
	w.review("ada", n, "APPROVED", "")
	former := head
	head = w.commit("b.txt", false) // between the look and the merge
	w.fake.Lab.Job(repo, string(head), "unit", "success", "forge/a", false)
	if err := w.Merge(ctx, repo, n, former, forges.FastForward); err == nil || !strings.Contains(err.Error(), "(409): SHA does not match HEAD") {
		t.Errorf("merged at another head: %v", err)
	}
	if err := w.Merge(ctx, repo, n, head, forges.FastForward); err != nil {
		t.Fatal(err)
	}
	p, err := w.Pull(ctx, repo, n)
	if err != nil || p.State != forges.Merged || p.Merge != head || p.BaseHead != head || p.MergedBy.Login != "bot" || p.Title != "Draft: T" || p.Draft {
		t.Errorf("merged it is %+v, %v", p, err)
	}
	refused("merged already", "it is merged already", false)
	if err := w.ClosePull(ctx, repo, n); err != nil {
		t.Errorf("close what is merged: %v", err)
	}
	w.role("bot", "reporter")
	if err := w.Merge(ctx, repo, n, head, forges.FastForward); !errors.Is(err, forges.ErrDenied) {
		t.Errorf("without the right to: %v", err)
	}
}

// TestMergedOtherwise: the commit that came to be on the base is known, however
// a project merges, and has the words of the head.
func TestMergedOtherwise(t *testing.T) {
	for method, set := range map[forges.Method]forgetest.Project{
		forges.MergeCommit: {Method: "merge"}, forges.Squash: {Method: "ff"},
	} {
		w := newWorld(t)
		ctx := wait.Context(t)
		head := w.commit("a.txt", true)
		n := w.open()
		w.fake.Lab.Set(repo, set)
		if err := w.Merge(ctx, repo, n, head, method); err != nil {
			t.Fatal(err)
		}
		p, err := w.Pull(ctx, repo, n)
		if err != nil || p.State != forges.Merged || p.Merge == head || p.Merge != p.BaseHead {
			t.Errorf("%s: it is %+v, %v", method, p, err)
		}
		asked, e1 := w.Message(ctx, repo, head)
		if got, e2 := w.Message(ctx, repo, p.Merge); e1 != nil || e2 != nil || got != fmt.Sprintf("%s (!%d)", asked, n) {
			t.Errorf("%s: the message is %q, and that of the head %q: %v, %v", method, got, asked, e1, e2)
		}
	}
}

// TestBaseIsDeleted: one that was merged, or closed, is so still when its base
// is deleted; one that is open waits for a person, and is not gone.
func TestBaseIsDeleted(t *testing.T) {
	for _, ended := range []forges.PullState{forges.Merged, forges.Closed, forges.Open} {
		w := newWorld(t)
		ctx := wait.Context(t)
		w.as("root1", "POST", "/repos/"+repo+"/contents/r.txt", `{"content": "YQo=", "message": "m", "branch": "main", "new_branch": "release"}`)
		in := `{"content": "YQo=", "message": "m", "branch": "release", "new_branch": "forge/a"}`
		head := git.OID(w.as("bot", "POST", "/repos/"+repo+"/contents/a.txt", in)["commit"].(map[string]any)["sha"].(string))
		p, err := w.OpenPull(ctx, repo, "forge/a", "release", forges.PullText{Title: "T"})
		if err != nil {
			t.Fatal(err)
		}
		switch ended {
		case forges.Merged:
			err = w.Merge(ctx, repo, p.Number, head, forges.FastForward)
		case forges.Closed:
			err = w.ClosePull(ctx, repo, p.Number)
		case forges.Open:
		}
		if err != nil {
			t.Fatal(err)
		}
		w.as("root1", "DELETE", "/repos/"+repo+"/branches/release", "null")
		p, err = w.Pull(ctx, repo, p.Number)
		if ended == forges.Open && (err == nil || isNotFound(err)) || ended != forges.Open && (err != nil || p.State != ended || p.Base != "release") {
			t.Errorf("%s: it is %+v, %v", ended, p, err)
		}
	}
}

// TestReopen: one that cannot be opened again, whose branch is gone, is said to be closed still.
func TestReopen(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	w.commit("a.txt", true)
	n := w.open()
	for range 2 {
		if err := w.ClosePull(ctx, repo, n); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := w.Pull(ctx, repo, n); err != nil || p.State != forges.Closed || p.ClosedBy.Login != "bot" {
		t.Errorf("closed it is %+v, %v", p, err)
	}
	w.as("bot", "DELETE", "/repos/"+repo+"/branches/forge%2Fa", "null")
	if refused, ok := errors.AsType[*forges.RefusedError](w.ReopenPull(ctx, repo, n)); !ok || !strings.Contains(refused.Reason, "stays closed") {
		t.Errorf("opened without a branch: %+v", refused)
	}
}

// TestProtection: the demands of the project and of the rules for a branch are
// told; an edition that has no rules demands no approvals.
func TestProtection(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	w.commit("a.txt", true)
	w.as("root1", "POST", "/repos/"+repo+"/branch_protections", `{"rule_name": "main", "required_approvals": 2, "dismiss_stale_approvals": true}`)
	w.fake.Lab.Set(repo, forgetest.Project{Pipelines: true, Resolved: true, Method: "rebase_merge"})
	p, err := w.Protection(ctx, repo, "main")
	if err != nil || !p.Protected || p.Approvals != 2 || !p.DismissStale || !p.Resolved || !p.UpToDate || !p.Rejections ||
		len(p.Statuses) != 1 || p.Statuses[0] != "*" {
		t.Errorf("main's is %+v, %v", p, err)
	}
	if p, err := w.Protection(ctx, repo, "forge/a"); err != nil || p.Protected || p.Approvals != 0 || !p.Resolved {
		t.Errorf("the branch's is %+v, %v", p, err)
	}
	w.fake.Lab.Set(repo, forgetest.Project{Free: true, Method: "merge"})
	if p, err := w.Protection(ctx, repo, "main"); err != nil || !p.Protected || p.Approvals != 0 || p.Rejections || p.UpToDate || p.Resolved ||
		len(p.Statuses) != 0 {
		t.Errorf("main's of a free edition is %+v, %v", p, err)
	}
}

// TestLabels: a label that is not there is not made, and is told when all else is done.
func TestLabels(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	w.commit("a.txt", true)
	n := w.open()
	err := w.EditPull(ctx, repo, n, forges.PullText{Title: "U", Labels: []string{"no such", "forge", "forge,evil"}})
	if p, _ := w.Pull(ctx, repo, n); !errors.Is(err, forges.ErrLabel) || p.Title != "U" || len(p.Labels) != 1 || p.Labels[0] != "forge" {
		t.Errorf("%+v, %v", p, err)
	}
}

// toIssue is a hint of the issue in them.
var toIssue = forges.Hint{Number: 7}

// labHint has deliveries as GitLab sends them, with what they lead to.
var labHint = map[string]forges.Hint{
	`"object_kind": "issue", "object_attributes": {"iid": 7, "title": "T", "description": "B"}`:                                     toIssue,
	`"object_kind": "work_item", "object_attributes": {"iid": 7, "title": "T", "description": "B"}`:                                 toIssue,
	`"object_kind": "note", "object_attributes": {"noteable_type": "Issue"}, "issue": {"iid": 7, "title": "T", "description": "B"}`: toIssue,
	`"object_kind": "note", "object_attributes": {"noteable_type": "MergeRequest"}, "merge_request": {"iid": 7, "title": "T"}`:      {Number: 7, Pull: true},
	`"object_kind": "merge_request", "object_attributes": {"iid": 7, "action": "approved"}`:                                         {Number: 7, Pull: true},
	`"object_kind": "pipeline", "object_attributes": {"id": 1, "sha": "` + aCommit + `"}, "merge_request": null`:                    {Commit: aCommit},
	`"object_kind": "pipeline", "object_attributes": {"id": 1, "sha": "` + aCommit + `"}, "merge_request": {"iid": 7}`:              {Number: 7, Pull: true},
	`"object_kind": "build", "sha": "` + aCommit + `"`:                                                                              {Commit: aCommit},
	`"object_kind": "push", "after": "` + aCommit + `"`:                                                                             {Commit: aCommit},
	`"object_kind": "issue", "object_attributes": {"iid": 7, "confidential": true}`:                                                 {},
	`"object_kind": "note", "object_attributes": {"noteable_type": "Issue"}, "issue": {"iid": 7, "confidential": true}`:             {},
	`"object_kind": "note", "object_attributes": {"noteable_type": "Issue", "internal": true}, "issue": {"iid": 7}`:                 {},
	`"object_kind": "note", "object_attributes": {"noteable_type": "Commit"}, "commit": {}`:                                         {},
	`"object_kind": "note", "object_attributes": {"noteable_type": "Issue"}`:                                                        {},
	`"object_kind": "issue", "object_attributes": {"iid": -7}`:                                                                      {},
	`"object_kind": "build", "sha": "../../issues"`:                                                                                 {},
	`"object_kind": "wiki_page", "object_attributes": {"iid": 7}`:                                                                   {},
}

// aCommit is one that deliveries are about.
const aCommit = "a466e452e239ae3ae94b6b16ce3ca92377690546"

// TestHint: each delivery leads to what it is about, in a project in groups of groups; one
// that is confidential to nothing, and names in it are checked before they become a path.
func TestHint(t *testing.T) {
	c := clientOf(t, "https://gitlab.com")
	const project = `, "project": {"id": 3, "path_with_namespace": "shop/front/web"}}`
	for body, want := range labHint {
		if want != (forges.Hint{}) {
			want.Repository, want.RepositoryID = "shop/front/web", 3
		}
		if got, err := c.Hint("x", []byte("{"+body+project)); got != want || err != nil {
			t.Errorf("%s leads to %+v, %v", body, got, err)
		}
	}
	good := `{"object_kind": "issue", "object_attributes": {"iid": 7}` + project
	for change, fails := range map[[2]string]bool{
		{`"id": 3`, `"id": 0`}: false, {"shop/front", "../front"}: true, {"shop/front/web", "web"}: true, {"{", "["}: true, {"7", `"7"`}: true,
	} {
		if got, err := c.Hint("x", []byte(strings.Replace(good, change[0], change[1], 1))); (err != nil) != fails || got != (forges.Hint{}) {
			t.Errorf("%v: %+v, %v", change, got, err)
		}
	}
}

// FuzzHint: whatever a delivery holds, it leads to a project that can be asked for, or nowhere.
func FuzzHint(f *testing.F) {
	for body := range labHint {
		f.Add([]byte("{" + body + `, "project": {"id": 3, "path_with_namespace": "shop/front/web"}}`))
	}
	c := clientOf(f, "https://gitlab.com")
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := c.Hint("x", body)
		nowhere := h.Number <= 0 && h.Commit == "" || h.Number < 0 || h.RepositoryID <= 0
		if err == nil && h.Repository != "" && (intake.CheckNested(h.Repository) != nil || nowhere) {
			t.Errorf("%q leads to %+v", body, h)
		}
	})
}

// TestOpenedByAnother: a second one of the same branches is the one that is
// open, whoever opened it, also when the answer of the first was lost.
func TestOpenedByAnother(t *testing.T) {
	w := newWorld(t)
	ctx := wait.Context(t)
	head := w.commit("a.txt", true)
	w.fake.Script(forgetest.Fault{Method: "POST", Part: "/merge_requests", Status: 502, After: true})
	_, err := w.OpenPull(ctx, repo, "forge/a", "main", forges.PullText{Title: "T"})
	if _, ok := errors.AsType[*forges.ParkedError](err); !ok {
		t.Errorf("a lost answer: %v", err)
	}
	p, err := w.OpenPull(ctx, repo, "forge/a", "main", forges.PullText{Title: "T"})
	if err != nil || p.Number != 2 || p.Head != head || p.Author.Login != "bot" {
		t.Errorf("opened again is %+v, %v", p, err)
	}
	if _, err := w.OpenPull(ctx, repo, "forge/none", "main", forges.PullText{Title: "T"}); err == nil ||
		!strings.Contains(err.Error(), "(422): [the branches do not exist]") {
		t.Errorf("a branch that is not there: %v", err)
	}
	if list, err := w.ChangedPulls(ctx, repo, "bot", time.Time{}); err != nil || len(list) != 1 || list[0].Number != 2 {
		t.Errorf("ours are %+v, %v", list, err)
	}
	if behind, err := w.Behind(ctx, repo, head, p.BaseHead); err != nil || behind {
		t.Errorf("behind: %v, %v", behind, err)
	}
}
