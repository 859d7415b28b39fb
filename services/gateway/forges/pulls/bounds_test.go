package pulls_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// crowd is a forge on which a crowd of strangers reviews, and a machine writes many statuses.
type crowd struct {
	pulls.Forge

	strangers, passed int
}

// Reviews adds an approval by each stranger.
func (c *crowd) Reviews(ctx context.Context, repository string, number int64) ([]forges.Review, error) {
	list, err := c.Forge.Reviews(ctx, repository, number)
	for n := range c.strangers {
		list = append(list, forges.Review{
			ID: int64(5000 + n), Author: intake.Account{ID: int64(1000 + n), Login: fmt.Sprint("aaa", n)}, Verdict: forges.Approved,
			Body: strings.Repeat("spam ", 1000),
		})
	}
	return list, err
}

// Statuses adds those that passed.
func (c *crowd) Statuses(ctx context.Context, repository string, head git.OID) ([]forges.Status, error) {
	list, err := c.Forge.Statuses(ctx, repository, head)
	for n := range c.passed {
		list = append(list, forges.Status{Name: fmt.Sprint("a/", n), Outcome: forges.Passed})
	}
	return list, err
}

// TestCrowd: however many others review or report, what a person asks for and a check
// that failed are in the snapshot, and nothing that was left out of it has it merged.
func TestCrowd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper(func(c *pulls.Config) { c.Forge = &crowd{c.Forge, 150, 300} })
	w.open(k)
	w.review("ada", "REQUEST_CHANGES", "no")
	w.status("ada", "z/last", "failure")
	p := w.open(k)
	if r := p.Reviews[0]; r.Person != "ada" || !r.May || r.Verdict != forge.PullChangesRequested {
		t.Errorf("the first review is %+v", r)
	}
	if len(p.Reviews) > 20 || p.Reviews[len(p.Reviews)-1].Text != "" {
		t.Errorf("there are %d reviews, the last one %+v", len(p.Reviews), p.Reviews[len(p.Reviews)-1])
	}
	if c := p.Checks[0]; c.Name != "z/last" || c.State != forge.PullCheckFailed || !strings.Contains(p.Blocked, "more than 200 checks") {
		t.Errorf("the first check is %+v, blocked %q", c, p.Blocked)
	}
}

// TestPatternsOfChecks: a protection names checks by a pattern. Until one that fits
// is there it is pending, and when all that fit have passed nothing is in the way.
func TestPatternsOfChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.as("root1", "POST", "/repos/"+w.repo+"/branch_protections", object{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"ci/*"},
	}, nil)
	k := w.keeper()
	if p := w.open(k); len(p.Checks) != 1 || p.Checks[0].State != forge.PullCheckPending || p.Blocked == "" {
		t.Errorf("before it is there: %+v", p)
	}
	w.status("ada", "ci/unit", "success")
	if p := w.open(k); len(p.Checks) != 1 || p.Checks[0].State != forge.PullCheckPassed || p.Blocked != "" {
		t.Errorf("when it has passed: %+v", p)
	}
	w.status("ada", "ci/lint", "failure")
	if p := w.open(k); !strings.Contains(p.Blocked, "ci/lint") {
		t.Errorf("when another one has failed: %+v", p)
	}
}

// TestBranchThatIsGone: a pull request whose branch was deleted with the merge
// is still that of its branch.
func TestBranchThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	w.in.Number = w.open(k).Number
	w.ready()
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/merge", object{"do": "fast-forward-only"}, nil)
	w.as("ada", "DELETE", "/repos/"+w.repo+"/branches/forge%2Ftask-1", nil, nil)
	for _, number := range []int{1, 0} {
		w.in.Number = number
		if p := w.open(w.keeper()); p.Number != 1 || p.State != forge.PullMerged || p.Branch != "forge/task-1" {
			t.Errorf("asked for by number %d it is %+v", number, p)
		}
	}
}

// TestReportAfterAnAnswer: what a look shows after an answer that said something else is reported,
// and a refusal that shows nowhere stays in what is reported until something else changes.
func TestReportAfterAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper(often)
	w.in.Number = w.open(k).Number
	w.ready()
	w.run(k)
	w.until("nothing is in the way", func(p *forge.PullRequest) bool { return p.Blocked == "" })
	w.fake.Script(forgetest.Fault{Method: "POST", Part: "/merge", Status: http.StatusMethodNotAllowed, Message: "files of it are protected"})
	if p, err := k.Merge(wait.Context(t), w.to, w.in); err != nil || p.Blocked != "files of it are protected" {
		t.Fatalf("it is %+v, %v", p, err)
	}
	w.until("it was refused", func(p *forge.PullRequest) bool { return p.Blocked == "files of it are protected" })
	n := len(w.reports())
	w.status("ada", "ci/other", "success")
	wait.Until(t, "nothing is in the way again", func() bool {
		list := w.reports()
		return len(list) > n && forge.As[*forge.PullRequest](list[len(list)-1].Output).Blocked == ""
	})
}

// TestMarkIsReadAgain: a mark that was altered, and mended since, misleads no
// report for longer than it stood there.
func TestMarkIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open(w.keeper())
	ours := w.show().Body
	other := strings.ReplaceAll(ours, `"number":2`, `"number":1`)
	if other == ours {
		t.Fatalf("the text has no mark of attempt 2: %q", ours)
	}
	edit := func(body string) {
		w.as("ada", "PATCH", "/repos/"+w.repo+"/pulls/1", object{"title": "x", "body": body}, nil)
	}
	last := func(number int) func() bool {
		return func() bool {
			list := w.reports()
			return len(list) > 0 && list[len(list)-1].Attempt.Number == number
		}
	}
	edit(other)
	w.run(w.keeper(often))
	wait.Until(t, "the altered mark is followed", last(1))
	edit(ours)
	wait.Until(t, "the mended one is", last(2))
}
