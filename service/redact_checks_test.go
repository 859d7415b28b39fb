package service

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// A check that passed on the judged tree counts, also if its command or its name looks like a secret to those who take
// secrets out of results.
func TestRedactedCheckCounts(t *testing.T) {
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
		got := forge.As[*forge.Rebase](withoutSecrets(c.r, forge.Result{Output: rb}).Output)
		if shown := got.Verify.Checks[0]; shown.Name+shown.Command == c.check.Name+c.check.Command {
			t.Errorf("%+v is shown", shown)
		}
		if claims := verdict.OfChecks(criteria, []forge.Check{c.check}, got.Verify, "t"); !claims[0].Counts() {
			t.Errorf("%q %q passed, and the rules say: %s", c.check.Name, c.check.Command, claims[0].Note)
		}
	}
}
