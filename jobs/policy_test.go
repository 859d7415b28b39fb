package jobs_test

import (
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// If the project does not say whether a requester may approve, they may only where one person could
// approve at all.
func TestPolicyOf(t *testing.T) {
	t.Parallel()
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

// TestPolicyTellsSettings says for people by which settings the work is done: what the file has
// beside the defaults, what is settled here, and what the operator decided in spite of the file.
func TestPolicyTellsSettings(t *testing.T) {
	t.Parallel()
	both := []forge.Setting{
		{Name: "base_branch", Value: "main", By: "default"}, {Name: "policy.approvals.not_requester", Value: "true", By: "default"},
	}
	for _, test := range []struct {
		file string
		word demand.Demand
		want []forge.Setting
	}{
		{"{}", demand.ByProject, both},
		{"{}", demand.Unconfined, append(both, forge.Setting{Name: "policy.sandbox", Value: "unconfined", By: "operator"})},
		{"{}", demand.Require, append(both, forge.Setting{Name: "policy.sandbox", Value: "require", By: "operator"})},
		{"policy: {sandbox: require}", demand.Unconfined, append(both, forge.Setting{Name: "policy.sandbox", Value: "require", By: "repository"})},
		{
			"policy: {sandbox_read: [/opt/x], approvals: {not_requester: false}}", demand.Require,
			[]forge.Setting{
				both[0],
				{Name: "policy.approvals.not_requester", Value: "false", By: "repository"},
				{Name: "policy.sandbox", Value: "require", By: "operator"},
				{Name: "policy.sandbox_read", By: "operator"},
			},
		},
		{"verify: ['A=1 make']", demand.ByProject, append(both, forge.Setting{Name: "verify", Value: "A=…", By: "repository"})},
	} {
		r := gittest.New(t, map[string]string{"pfl-forge.yaml": test.file + "\n"})
		host := jobs.Host{StateDir: t.TempDir(), Sandbox: test.word, Log: slog.New(slog.DiscardHandler)}
		host.Owner = process.NewOwner(host.StateDir)
		set, err := jobs.OpenSet(t.Context(), host, []jobs.Source{{Project: repotest.Project, Path: r.Dir}})
		if err != nil {
			t.Fatal(err)
		}
		repo := get(t, set)
		tip, err := repo.Tip(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, err := repo.Config(t.Context(), tip)
		if err != nil {
			t.Fatal(err)
		}
		got := jobs.PolicyOf(&jobs.Job{Repository: repo, Tip: tip, Config: c}).Settings
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s, %q (-want +got):\n%s", test.file, test.word, diff)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}
