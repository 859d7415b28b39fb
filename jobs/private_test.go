package jobs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// modelCalls opens a repository with the file a.txt, and returns a function that has a
// model run a command line in a call of its own. With checkout the call has one of the
// tip, else it works in its scratch directory. The function returns what the line prints.
func modelCalls(t *testing.T) func(role agent.Role, checkout bool, line string) string {
	t.Helper()
	if err := process.Probe(t.Context(), sandbox.NetworkFull); err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	r := gittest.New(t, map[string]string{"a.txt": "a\n"})
	state := t.TempDir()
	model := &obedient{owner: process.NewOwner(state)}
	set := repotest.Open(t, state, jobs.Source{Project: repotest.Project, Path: r.Dir}, model)
	return func(role agent.Role, checkout bool, line string) string {
		t.Helper()
		model.line = line
		var out agent.Outcome
		res := do(t, set, func(ctx context.Context, j *jobs.Job) error {
			j.Command.Intent.Agent = config.AgentClaude
			call := agent.Call{Role: role}
			if checkout {
				c, done, err := j.View(ctx, "look", j.Tip)
				if err != nil {
					return err
				}
				defer done()
				call.Dir = c.Dir()
			}
			var err error
			out, err = j.Run(ctx, call)
			return err
		})
		if f := res.Failure(); f != nil {
			t.Fatal(f)
		}
		return strings.TrimSpace(out.Text)
	}
}

// TestReadersWriteNothingToTheirCheckout: for an agent that only reads, its
// checkout is mounted so. It has a home to write to all the same. One that
// implements writes to the checkout by the same commands.
func TestReadersWriteNothingToTheirCheckout(t *testing.T) {
	t.Parallel()
	call := modelCalls(t)
	const line = `cat a.txt
touch x 2>/dev/null && echo made
(echo b >>a.txt) 2>/dev/null && echo changed
rm -f a.txt 2>/dev/null && echo removed
chmod 777 . 2>/dev/null && echo opened
touch "$HOME/x" && echo home`
	for role, want := range map[agent.Role]string{
		agent.RoleAnalyze: "a\nhome", agent.RoleReview: "a\nhome", agent.RoleReflect: "a\nhome",
		agent.RoleImplement: "a\nmade\nchanged\nremoved\nopened\nhome",
	} {
		if got := call(role, true, line); got != want {
			t.Errorf("%s does\n%s\nwant\n%s", role, got, want)
		}
	}
}

// TestCallsShareNoFiles: HOME and the directories for temporary files are of
// one call, and empty when it begins. Nothing of the machine is in them, and
// the call after it finds nothing of the one before.
func TestCallsShareNoFiles(t *testing.T) {
	t.Parallel()
	machine, err := os.CreateTemp("/tmp", "pfl-forge-left-") // a call has another directory there
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(machine.Name()) }()
	_ = machine.Close()
	call := modelCalls(t)
	name := filepath.Base(machine.Name())
	// What is mounted below /tmp, such as the call's own directory, is no file there.
	line := `find /tmp /var/tmp /dev/shm "$HOME" "${TMPDIR:-/tmp}" -maxdepth 1 ! -type d
for d in /tmp /var/tmp /dev/shm "$HOME"; do echo x >"$d/` + name + `-again" || echo "cannot write to $d"; done
test -e /tmp/` + name + `-again && echo wrote`
	for _, which := range []string{"first", "second"} {
		if got := call(agent.RoleImplement, false, line); got != "wrote" {
			t.Errorf("the %s call finds\n%s", which, got)
		}
	}
}
