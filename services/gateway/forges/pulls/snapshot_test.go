package pulls_test

import (
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// TestWhoMayDecide: a review counts only if the forge counts it, its account is a person's whom
// the file of tokens has, and that person may write now; each with the commit that was reviewed.
func TestWhoMayDecide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	w.open(k)
	w.review("eve", "APPROVED", "a stranger") // evelyn, a person of the file of tokens, who may not write
	w.review("root1", "APPROVED", "an account that no person is known for")
	w.review("ada", "APPROVED", "at first")
	w.review("ada", "COMMENT", "which decides nothing")
	w.review("ada", "REQUEST_CHANGES", "no\x1b[2J\u202e, and s3cret-of-ours")
	p := w.open(k)
	if len(p.Reviews) != 3 {
		t.Fatalf("the reviews are %+v", p.Reviews)
	}
	ada, bob, eve := p.Reviews[0], p.Reviews[1], p.Reviews[2]
	if bob.May || bob.Person != "" || bob.Account != "work account 1 root1" || bob.Verdict != forge.PullApproved || bob.Commit != w.in.Head {
		t.Errorf("the unknown one is %+v", bob)
	}
	if eve.May || eve.Person != "evelyn" || eve.Account != "work account 4 eve" {
		t.Errorf("the stranger is %+v", eve)
	}
	if !ada.May || ada.Person != "ada" || ada.Verdict != forge.PullChangesRequested || !strings.Contains(ada.Text, "a.txt:1: why ada?") {
		t.Errorf("ada is %+v", ada)
	}
	if strings.ContainsAny(ada.Text, "\x1b\u202e") || strings.Contains(ada.Text, "s3cret-of-ours") {
		t.Errorf("her words are %q", ada.Text)
	}
	// Who may not write any more decides nothing, whatever the forge remembers
	// of the time of the review.
	w.as("root1", "PUT", "/repos/"+w.repo+"/collaborators/ada", object{"permission": "read"}, nil)
	if p := w.open(k); p.Reviews[1].May {
		t.Errorf("without the right to write she is %+v", p.Reviews[1])
	}
	w.as("root1", "PUT", "/repos/"+w.repo+"/collaborators/ada", object{"permission": "write"}, nil)
	// A stranger who is let in later has not decided before that.
	w.as("root1", "PUT", "/repos/"+w.repo+"/collaborators/eve", object{"permission": "write"}, nil)
	if p := w.open(k); p.Reviews[2].Account != "work account 4 eve" || p.Reviews[2].May {
		t.Errorf("she is %+v", p.Reviews[2])
	}
	// An approval of another change is taken back by the forge.
	w.review("ada", "APPROVED", "now")
	w.commit("forge/task-1", "forge/task-1", "b.txt", "b")
	p = w.open(k)
	if p.Head == w.in.Head {
		t.Fatal("the head is the old one")
	}
	for _, r := range p.Reviews {
		if r.May {
			t.Errorf("of another change there is %+v", r)
		}
	}
}

// TestReviewsTakeTheRole: a review of who may write at the forge, and is no
// approver of the project, decides nothing, as a comment does not.
func TestReviewsTakeTheRole(t *testing.T) {
	t.Parallel()
	for roles, want := range map[string]bool{
		"shop: [approver]": true, `"*": [approver]`: true, "shop: [viewer, requester, operator, auditor]": false, "bank: [approver]": false,
	} {
		w := newWorld(t)
		book := w.book("tokens:\n  ada: {person: ada, accounts: {work: 3}, projects: {" + roles + "}}\n")
		k := w.keeper(func(c *pulls.Config) { c.Tokens = book })
		w.open(k)
		w.review("ada", "APPROVED", "fine")
		p := w.open(k)
		if len(p.Reviews) != 1 || p.Reviews[0].Person != "ada" || p.Reviews[0].May != want {
			t.Errorf("with %s they are %+v", roles, p.Reviews)
		}
	}
}

// TestChecks: checks of others are told with their words, what is demanded and not there is
// pending, our own statuses are not among them, and one of our name that another wrote is found.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	p := w.open(k)
	if len(p.Checks) != 1 || p.Checks[0].Name != "ci/unit" || p.Checks[0].State != forge.PullCheckPending || p.Blocked != "the status ci/unit has not passed" {
		t.Errorf("at first it is %+v", p)
	}
	w.status("ada", "ci/unit", "failure")
	w.status("ada", "ci/lint", "success")
	p = w.open(k)
	if len(p.Checks) != 2 || p.Checks[1] != (forge.PullCheck{Name: "ci/lint", State: forge.PullCheckPassed}) ||
		p.Checks[0] != (forge.PullCheck{Name: "ci/unit", State: forge.PullCheckFailed, Output: "1 of 7 failed"}) {
		t.Errorf("the checks are %+v", p.Checks)
	}
	w.status("ada", "ci/unit", "success")
	if p = w.open(k); p.Blocked != "it has 0 of 1 approvals" {
		t.Errorf("without an approval it is %+v", p)
	}
	w.review("ada", "APPROVED", "")
	if p = w.open(k); p.Blocked != "" {
		t.Errorf("with everything it is %+v", p)
	}
	w.status("ada", "pfl-forge/review", "success")
	stop := w.run(w.keeper(often))
	w.until("a status is not ours", func(p *forge.PullRequest) bool {
		return p.Blocked == "the status pfl-forge/review is not ours: ada wrote it"
	})
	stop()
	// The next time that it is asked for, ours is written over it.
	if p = w.open(k); p.Blocked != "" {
		t.Errorf("afterwards it is %+v", p)
	}
}
