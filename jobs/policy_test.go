package jobs_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// If the project does not say whether a requester may approve, they may only where one person could
// approve at all.
func TestPolicyOf(t *testing.T) {
	for policy, want := range map[string]forge.Approvals{
		"{}":                                  {Count: 1, NotRequester: true},
		"{approvers: [ada]}":                  {Count: 1, Persons: 1},
		"{approvers: [ada, bob]}":             {Count: 1, NotRequester: true, Persons: 2},
		"{approvals: {count: 3}}":             {Count: 3, NotRequester: true},
		"{approvals: {not_requester: false}}": {Count: 1},
		"{approvers: [ada], approvals: {not_requester: true}}": {Count: 1, NotRequester: true, Persons: 1},
	} {
		r := gittest.New(t, map[string]string{"pfl-forge.yaml": "policy: " + policy + "\n"})
		tip := r.Head("main")
		repo := get(t, repotest.Local(t, r.Dir))
		c, err := repo.Config(t.Context(), tip)
		if err != nil {
			t.Fatal(err)
		}
		want.Commit = string(tip)
		if got := jobs.PolicyOf(&jobs.Job{Repository: repo, Tip: tip, Config: c}).Approvals; got != want {
			t.Errorf("%s: got %+v, want %+v", policy, got, want)
		}
	}
}
