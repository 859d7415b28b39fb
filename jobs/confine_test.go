package jobs_test

import (
	"context"
	"log/slog"
	"net"
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
	t.Setenv("HOME", dir)
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
		{"by ~, of the home", "policy: {sandbox: require, sandbox_read: [~/read], sandbox_write: [~/written]}", "", "", []string{
			"read " + read, "read " + written, "write " + written, "read " + inside,
		}},
		{"by ~, but what is private", "policy: {sandbox: require, sandbox_read: [~/read, ~/written]}", "", read, []string{"read " + written}},
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

// dialVariable makes the test binary a program that connects to the socket that it names.
const dialVariable = "PFL_FORGE_TEST_DIAL"

// init is before tests begin: a command in a sandbox is to connect, and no
// other program that does so is everywhere.
func init() { //nolint:gochecknoinits // see above
	if path := os.Getenv(dialVariable); path != "" {
		conn, err := net.Dial("unix", path)
		if err != nil {
			os.Exit(1)
		}
		_ = conn.Close()
		os.Exit(0)
	}
}

// TestGrantedSocket: a socket in a directory that is granted to read can be
// connected to, and one beside it is not there. The guide says so, as a person
// who grants such a directory grants what listens there.
func TestGrantedSocket(t *testing.T) {
	t.Parallel()
	if err := process.Probe(t.Context(), sandbox.NetworkFull); err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	line := "true"
	for _, name := range []string{"granted", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		socket := filepath.Join(dir, name, "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		line += "; " + dialVariable + "=" + socket + " " + self + " && echo " + name
	}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "policy: {sandbox_read: [" + filepath.Join(dir, "granted") + ", " + self + "]}\n"})
	if got := strings.TrimSpace(asModel(t, r.Dir, t.TempDir(), nil, nil, line+"; true")); got != "granted" {
		t.Errorf("it connects to %q, want only what is granted", got)
	}
}
