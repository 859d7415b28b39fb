package service

import (
	"cmp"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/service/withheld"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// A check that passed on the judged tree counts, also if its command or its
// name looks like a secret to those who take secrets out of results.
func TestRedactedCheckCounts(t *testing.T) {
	t.Parallel()
	known := redact.New(redact.Environ([]string{"NPM_TOKEN=integration"})...)
	for _, c := range []struct {
		r     *redact.Redactor
		check forge.Check
	}{
		{&shapes, forge.Check{Criterion: 1, Command: "curl -fsS http://ci:ci-password@localhost:8080/health"}},
		{known, forge.Check{Criterion: 1, Name: "integration"}},
		{known, forge.Check{Criterion: 1, Command: "go test -tags integration ./..."}},
	} {
		criteria := []string{c.check.Text()}
		run := forge.CheckRun{ID: verdict.RunID(&c.check), Name: c.check.Name, Command: c.check.Command, Tree: "t", Passed: true}
		rb := &forge.Rebase{Tree: "t", Verify: &forge.VerifyReport{Passed: true, Checks: []forge.CheckRun{run}}}
		got := forge.As[*forge.Rebase](withheld.Result(c.r, forge.Result{Output: rb}).Output)
		if shown := got.Verify.Checks[0]; shown.Name+shown.Command == c.check.Name+c.check.Command {
			t.Errorf("%+v is shown", shown)
		}
		if claims := verdict.OfChecks(criteria, []forge.Check{c.check}, got.Verify, "t"); !claims[0].Counts() {
			t.Errorf("%q %q passed, and the rules say: %s", c.check.Name, c.check.Command, claims[0].Note)
		}
	}
}

// A claim answers its requirement also where that has words in it which look
// like a secret: they are taken out of results, and not out of what was asked
// for. A claim about something else does not.
func TestRedactedClaimCounts(t *testing.T) {
	t.Parallel()
	known := redact.New(redact.Environ([]string{"NPM_TOKEN=integration"})...)
	for _, c := range []struct {
		r            *redact.Redactor
		asked, about string
		counts       bool
	}{
		{&shapes, "http://ci:ci-password@localhost is no default any more", "", true},
		{known, "integration tests run in integration", "", true},
		{known, "integration tests run", "the integration tests ran", false},
		{&shapes, "a", "[redacted] b", false},
	} {
		claim := forge.Claim{Number: 1, Text: cmp.Or(c.about, c.asked), Met: true, Confidence: 1, Evidence: []forge.Citation{{Resolved: true}}}
		rv := forge.As[*forge.Review](withheld.Result(c.r, forge.Result{Output: &forge.Review{Claims: []forge.Claim{claim}}}).Output)
		if c.counts && rv.Claims[0].Text == c.asked {
			t.Errorf("nothing is taken out of %q", c.asked)
		}
		weighed, against := verdict.Weigh([]string{c.asked}, rv.Claims, 0.7)
		if counts := weighed[0].Counts() && len(against) == 0; counts != c.counts {
			t.Errorf("%q of %q: %+v", rv.Claims[0].Text, c.asked, weighed[0])
		}
	}
}
