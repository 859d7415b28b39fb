package jobs_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/recipe"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// look runs a recipe that says what it can see. private is what no project can grant.
func look(t *testing.T, demand demand.Demand, private, policy string, paths ...string) (string, *forge.Failure) {
	t.Helper()
	config := policy + "\nagent: recipe\nrecipes:\n  look:\n    run: |\n"
	for _, path := range paths {
		config += "      test -r " + path + " && echo read " + path + "; test -w " + path + " && echo write " + path + "\n"
	}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": config + "      true\n"})
	state := t.TempDir()
	owner := process.NewOwner(state)
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: owner, Agents: []agent.Agent{recipe.New(owner)}, Sandbox: demand, Log: slog.New(slog.DiscardHandler),
		Private: []string{"", private},
	}, []jobs.Source{{Project: repotest.Project, Path: r.Dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	var out agent.Outcome
	cmd := forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}, Intent: forge.Intent{Settings: forge.Settings{Recipe: "look"}}}
	res := set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
		c, done, err := j.View(ctx, "look", j.Tip)
		if err != nil {
			return err
		}
		defer done()
		out, err = j.Run(ctx, agent.Call{Role: agent.RoleImplement, Dir: c.Dir()})
		return err
	})
	return out.Text, res.Failure()
}

// TestGrants shows what a project grants, and nothing of it where the service says so.
func TestGrants(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	read, written, other := filepath.Join(dir, "read"), filepath.Join(dir, "written"), filepath.Join(dir, "other")
	for _, path := range []string{read, written, other} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inside := filepath.Join(read, "inside")
	if err := os.WriteFile(inside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	grants := "sandbox_read: [" + read + "], sandbox_write: [" + written + "]}"
	offered := process.Probe(t.Context(), sandbox.NetworkFull) == nil
	for _, tt := range []struct {
		name, policy string
		demand       demand.Demand
		private      string
		want         []string
	}{
		{
			"unconfined", "policy: {" + grants, demand.Unconfined, "",
			[]string{"read " + read, "write " + read, "read " + written, "write " + written, "read " + other, "write " + other, "read " + inside, "write " + inside},
		},
		{
			"required by the project", "policy: {sandbox: require, " + grants, demand.Unconfined, "",
			[]string{"read " + read, "read " + written, "write " + written, "read " + inside},
		},
		{"but what is private", "policy: {sandbox: require, " + grants, "", read, []string{"read " + written, "write " + written}},
		{
			"also within what is granted", "policy: {sandbox: require, sandbox_read: [" + dir + "]}", "", read,
			[]string{"read " + read, "read " + written, "read " + other},
		},
		{"required by the service", "policy: {" + grants, demand.Require, "", []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, failure := look(t, tt.demand, tt.private, tt.policy, read, written, other, inside)
			if !offered && tt.name != "unconfined" {
				if failure == nil || failure.Reason != forge.FailSandbox {
					t.Errorf("there is no sandbox, and %+v", failure)
				}
				return
			}
			if failure != nil {
				t.Fatal(failure)
			}
			if got, want := strings.TrimSpace(text), strings.Join(tt.want, "\n"); got != want {
				t.Errorf("it can\n%s\nwant\n%s", got, want)
			}
		})
	}
}
