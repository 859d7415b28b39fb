package jobs_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/recipe"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// obedient is a model that runs one command line where it works, and answers with what that prints.
type obedient struct {
	owner process.Owner
	line  string
}

func (*obedient) Name() string { return config.AgentClaude }

func (o *obedient) Run(ctx context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	res, err := agent.RunShell(ctx, agent.Shell{
		Command: o.line, Dir: c.Dir, ScratchDir: c.ScratchDir, Owner: o.owner, Env: c.Env, Sandbox: c.Sandbox, Sink: func(agent.Event) {},
	})
	return agent.Outcome{Text: res.Output}, err
}

// poison writes to every cache that a command can name, over what is there and beside it.
const poison = `for d in "$GOCACHE" "$GOMODCACHE" "$XDG_CACHE_HOME" "$npm_config_cache" "$OPERATOR"; do
  test -n "$d" || continue; mkdir -p "$d"; echo evil > "$d/new"; rm -f "$d/old"; echo evil > "$d/old"; ln -sf /etc "$d/link"
done
true
`

// search fails if a cache has more than what was there at first.
const search = `for d in "$GOCACHE" "$GOMODCACHE" "$XDG_CACHE_HOME" "$npm_config_cache"; do
  test -n "$d" || continue; grep -rs evil "$d" && exit 1; test ! -e "$d/link" || exit 1
done
test -z "$GOCACHE" || test "$(cat "$GOCACHE/old")" = good
`

// TestNoChangeWritesWhatOthersBuildFrom: neither a change that is verified nor
// what a model runs writes to caches that an operator shares, or that another task
// reads. Once a change is merged, what its commands cached is there for the next.
func TestNoChangeWritesWhatOthersBuildFrom(t *testing.T) {
	t.Parallel()
	if err := process.Probe(t.Context(), sandbox.NetworkFull); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "old"), []byte("good\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := gittest.New(t, map[string]string{
		"pfl-forge.yaml": "verify: ['sh check']\npolicy: {sandbox: require}\n", "check": search,
	})
	r.Git("checkout", "-q", "-b", "change")
	evil := r.Commit("change", map[string]string{"check": poison})
	r.Git("checkout", "-q", "main")
	state := t.TempDir()
	owner := process.NewOwner(state)
	model := &obedient{owner: owner}
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: owner, Agents: []agent.Agent{recipe.New(owner), model}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Env: []string{"GOCACHE=" + shared},
	}, []jobs.Source{{Project: repotest.Project, Path: r.Dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	verify := func(commit git.OID, want bool) {
		t.Helper()
		res := do(t, set, func(ctx context.Context, j *jobs.Job) error {
			if commit == "" {
				commit = j.Tip
			}
			report, err := j.Verify(ctx, commit)
			if err == nil && report.Passed != want {
				t.Errorf("the commands report %+v", report)
			}
			return err
		})
		if f := res.Failure(); f != nil {
			t.Fatal(f)
		}
	}
	call := func(line string) string {
		t.Helper()
		model.line = line
		var out agent.Outcome
		res := do(t, set, func(ctx context.Context, j *jobs.Job) (err error) {
			j.Command.Intent.Agent = config.AgentClaude
			out, err = j.Run(ctx, agent.Call{Role: agent.RoleImplement})
			return err
		})
		if f := res.Failure(); f != nil {
			t.Fatal(f)
		}
		return out.Text
	}
	verify(evil, true)
	verify("", true)
	if got := call("OPERATOR=" + shared + "; " + poison); strings.Contains(got, "good") {
		t.Errorf("a model sees %s", got)
	}
	if got := call(search + "\necho clean"); !strings.HasSuffix(strings.TrimSpace(got), "clean") {
		t.Errorf("the next model finds %s", got)
	}
	verify("", true)
	entries, err := os.ReadDir(shared)
	content, _ := os.ReadFile(filepath.Join(shared, "old"))
	if err != nil || len(entries) != 1 || string(content) != "good\n" {
		t.Errorf("the shared cache has %v, and %q; %v", entries, content, err)
	}
	r.Git("merge", "-q", "--ff-only", "change")
	r.Commit("back", map[string]string{"check": search})
	verify("", false) // finds what it left beside what was there
	if content, _ := os.ReadFile(filepath.Join(shared, "old")); string(content) != "good\n" {
		t.Errorf("the shared cache has %q", content)
	}
}

// TestVerifyBuildsOnWhatSetUpDownloaded: the commands for one checkout share their caches.
func TestVerifyBuildsOnWhatSetUpDownloaded(t *testing.T) {
	t.Parallel()
	report, failure := verify(t, "worktree_setup: ['mkdir -p $GOMODCACHE && echo m > $GOMODCACHE/m']\nverify: ['grep -q m $GOMODCACHE/m']")
	if failure != nil || report == nil || !report.Passed {
		t.Errorf("got %+v, %v", report, failure)
	}
}
