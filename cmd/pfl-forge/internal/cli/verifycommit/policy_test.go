package verifycommit

import (
	"cmp"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/proof"
)

// The policy that counts is that of a commit which the change is built on:
// neither the change itself nor another branch loosens it.
func TestApprovalsByThePolicyOfTheBase(t *testing.T) {
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "policy: {approvals: {count: 2, not_requester: true}, approvers: [ada, bob]}\n"})
	base := r.Head("main")
	loose := r.Commit("loosen it", map[string]string{"pfl-forge.yaml": "policy: {approvals: {count: 1}}\n"})
	broken := r.Commit("break it", map[string]string{"pfl-forge.yaml": "policy: {approvals: {count: 0}}\n"})
	without := r.Commit("on it", map[string]string{"a": "b\n"})
	repo, err := open(t.Context(), &kit.App{Where: kit.Where{Dir: r.Dir}, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.close()
	c := checker{repo: repo}
	objects := repo.NewReader(t.Context())
	defer objects.Close()
	for name, tt := range map[string]struct {
		commit, policy git.OID
		need           proof.Need
		want           string
	}{
		"as it asks":       {commit: loose, policy: base, need: proof.Need{Count: 2, NotRequester: true}},
		"fewer":            {commit: loose, policy: base, need: proof.Need{Count: 1, NotRequester: true}, want: "policy.approvals.count at"},
		"by the requester": {commit: loose, policy: base, need: proof.Need{Count: 2}, want: "policy.approvals.not_requester at"},
		"later":            {commit: broken, policy: loose, need: proof.Need{Count: 1}},
		"its own":          {commit: loose, policy: loose, need: proof.Need{Count: 1}, want: "which it is not built on"},
		"one that cannot be read": {
			commit: without, policy: broken, need: proof.Need{Count: 1}, want: "cannot be read",
		},
		"none":         {commit: loose, need: proof.Need{Count: 2}, want: "does not say which commit's policy"},
		"not a commit": {commit: loose, policy: git.OID(strings.Repeat("1", 40)), want: "is no commit here"},
	} {
		tt.need.What, tt.need.Policy = proof.OfPlan, string(tt.policy)
		var report proof.Report
		if err := c.hold(t.Context(), objects, &report, tt.commit, tt.need); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(report.Problems, "; "); (tt.want == "") != report.OK() || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestTwoReviewersByThePolicyOfTheBase has changes that one reviewer reviewed.
// Whether that is enough is said by a commit which the change is built on: the
// change cannot turn the second reviewer off, and no plan does by naming no commit.
func TestTwoReviewersByThePolicyOfTheBase(t *testing.T) {
	r := gittest.New(t, map[string]string{"a": "a\n"})
	before := r.Head("main")
	base := r.Commit("two", map[string]string{"pfl-forge.yaml": "review: {second: {agent: codex}}\n"})
	off := r.Commit("turn it off", map[string]string{"pfl-forge.yaml": "agent: claude\n"})
	later := r.Commit("on it", map[string]string{"a": "b\n"})
	repo, err := open(t.Context(), &kit.App{Where: kit.Where{Dir: r.Dir}, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.close()
	c := checker{repo: repo}
	objects := repo.NewReader(t.Context())
	defer objects.Close()
	two := "asks for two reviewers, and there is proof of one"
	for name, tt := range map[string]struct {
		commit, policy    git.OID
		approved          git.OID
		risk, step, agent string
		want              string
	}{
		"it takes two":              {commit: off, policy: base, risk: "med", want: two},
		"of a risk that takes one":  {commit: off, policy: base, risk: "low"},
		"the plan names no commit":  {commit: off, risk: "high", want: two},
		"its own commit":            {commit: off, policy: off, risk: "high", want: "which it is not built on"},
		"since it was turned off":   {commit: later, policy: off, risk: "high"},
		"reviewed before it was on": {commit: off, policy: before, risk: "high"},
		"approved before it was on": {commit: off, approved: before, risk: "high"},
		"approved since":            {commit: off, approved: base, risk: "high", want: two},
		"approved, by no commit":    {commit: off, approved: "none", risk: "high", want: two},
		"judged by criterion":       {commit: off, policy: base, risk: "med", step: "judge"},
		"a recipe's check":          {commit: off, policy: base, risk: "med", agent: "recipe"},
	} {
		review := &proof.Review{Step: cmp.Or(tt.step, "review"), Verdict: proof.VerdictApproved, Agent: cmp.Or(tt.agent, "claude")}
		plan := &proof.Plan{Risk: tt.risk, Policy: string(tt.policy)}
		if tt.approved != "" {
			plan.Needs = []proof.Need{{What: proof.OfPlan, Policy: strings.TrimPrefix(string(tt.approved), "none")}}
		}
		report := proof.Report{Statements: []proof.Shown{{Predicate: review}, {Predicate: plan}}}
		if err := c.second(t.Context(), objects, &report, tt.commit); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(report.Problems, "; "); (tt.want == "") != report.OK() || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
