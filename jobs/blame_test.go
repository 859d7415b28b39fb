package jobs_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/service/elsewhere"
)

// among carries out a command as a worker does that has other replicas beside
// it, and returns the failure and whether the command is left to them.
func among(t *testing.T, set *jobs.Set, cmd forge.Command, work func(context.Context, *jobs.Job) error) (f *forge.Failure, left bool) {
	t.Helper()
	cmd.To, cmd.BudgetUSD = forge.Key{Project: repotest.Project, Intent: "fix"}, 5
	ctx, heard := elsewhere.Listen(t.Context(), nil)
	res := set.Do(ctx, &cmd, func(forge.Progress) {}, work)
	return res.Failure(), heard.Leave(&cmd, elsewhere.Round{Delivery: 1}, res.Failure()) != nil
}

func noWork(context.Context, *jobs.Job) error { return nil }

// TestWithoutGit takes git away from a replica: what fails by that is left to
// others, and the replica is not well until git is back.
func TestWithoutGit(t *testing.T) {
	set := repotest.Clone(t, gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin())
	if f, _ := among(t, set, forge.Command{}, noWork); f != nil {
		t.Fatal(f)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	if f, left := among(t, set, forge.Command{}, noWork); f == nil || f.Reason != forge.FailRepository || !left {
		t.Errorf("left to others: %t, %+v", left, f)
	}
	for name, err := range map[string]error{"work": set.Unwell(), "readiness": set.Check(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "git is not in PATH") {
			t.Errorf("%s without git: %v", name, err)
		}
	}
	t.Setenv("PATH", path)
	wait.Until(t, "it is well again", func() bool { return set.Unwell() == nil && set.Check(t.Context()) == nil })
	if f, _ := among(t, set, forge.Command{}, noWork); f != nil {
		t.Error(f)
	}
}

// TestOriginReachedByOthersOnly has a replica fail to reach the origin once more after
// the project has heard that it is reached: it is this replica's fault, which leaves
// the project's commands to others until it reaches the origin, and is not ready.
func TestOriginReachedByOthersOnly(t *testing.T) {
	t.Parallel()
	dir := gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin()
	set := repotest.Clone(t, dir)
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if f, left := among(t, set, forge.Command{Accounts: 4}, noWork); f == nil || f.Reason != forge.FailOrigin || left {
		t.Errorf("the first time it is left to others: %t, %+v", left, f)
	}
	if err := set.Check(t.Context()); err != nil {
		t.Errorf("an origin that may be away for all makes this replica unready: %v", err)
	}
	next := forge.Command{To: forge.Key{Project: repotest.Project, Intent: "fix"}, Accounts: 6}
	if f, left := among(t, set, next, noWork); f == nil || f.Reason != forge.FailOrigin || left {
		t.Errorf("rules that do not know the reason are told: %t, %+v", left, f)
	}
	next.Accounts, next.Patience = 7, elsewhere.Patience
	if f, left := among(t, set, next, noWork); f == nil || f.Reason != forge.FailReplica || !left || !strings.Contains(f.Message, dir) {
		t.Errorf("the second time it is left to others: %t, %+v", left, f)
	}
	away := next
	away.ClosedAgents = []string{forge.GitOrigin}
	if set.Check(t.Context()) == nil || set.Elsewhere(&next) == nil || set.Unwell() != nil || set.Elsewhere(&away) != nil {
		t.Errorf("ready %v, the next command %v, one that is held %v, all %v", set.Check(t.Context()), set.Elsewhere(&next), set.Elsewhere(&away), set.Unwell())
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "it reaches the origin", func() bool { return set.Check(t.Context()) == nil && set.Elsewhere(&next) == nil })
	if f, _ := among(t, set, next, noWork); f != nil {
		t.Error(f)
	}
}

// breaking is an executor whose sandboxes can be made, until they cannot.
type breaking struct {
	offering
	broken atomic.Bool
}

func (b *breaking) Probe(ctx context.Context, n sandbox.Network) error {
	if b.broken.Load() {
		return process.ErrSandbox
	}
	return b.offering.Probe(ctx, n)
}

func (b *breaking) Run(ctx context.Context, c process.Command) (process.Report, error) {
	if b.broken.Load() {
		return process.Report{ExitCode: -1}, process.ErrSandbox
	}
	return b.offering.Run(ctx, c)
}

// TestSandboxIsGone: a sandbox that could be made and cannot be any more is no
// fault of the command, which others may have. The replica takes no work until
// it can be made again. Where commands need none, the others of them are taken.
func TestSandboxIsGone(t *testing.T) {
	t.Parallel()
	for word, unwell := range map[demand.Demand]bool{demand.Require: true, demand.Unconfined: false} {
		t.Run(string(word), func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			e := &breaking{offering: offering{name: forge.ExecutorNamespaces, offers: []sandbox.Network{sandbox.NetworkFull, sandbox.NetworkNone}}}
			set, err := jobs.OpenSet(t.Context(), jobs.Host{
				StateDir: state, Owner: process.NewOwner(state).RunIn(e), Sandbox: word, Log: slog.New(slog.DiscardHandler),
			}, []jobs.Source{{Project: repotest.Project, URL: gittest.New(t, map[string]string{"pfl-forge.yaml": verifies + noNetwork}).Origin()}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := set.Close(); err != nil {
					t.Error(err)
				}
			}()
			verify := func(ctx context.Context, j *jobs.Job) error {
				_, err := j.Verify(ctx, j.Tip)
				return err
			}
			if f, _ := among(t, set, forge.Command{}, verify); f != nil {
				t.Fatal(f)
			}
			e.broken.Store(true)
			if f, left := among(t, set, forge.Command{}, verify); f == nil || f.Reason != forge.FailSandbox || !left {
				t.Errorf("left to others: %t, %+v", left, f)
			}
			if err := set.Unwell(); (err != nil) != unwell || unwell && !strings.Contains(err.Error(), "sandbox: ") {
				t.Errorf("without a sandbox it is unwell: %v", err)
			}
			e.broken.Store(false)
			wait.Until(t, "it is well again", func() bool { return set.Unwell() == nil && set.Check(t.Context()) == nil })
		})
	}
}

// TestNoProgramHere: an agent's program that is missing here may be there elsewhere, and what needs
// no agent is done here meanwhile. Where there are no other replicas the failure is told as it is.
func TestNoProgramHere(t *testing.T) {
	t.Parallel()
	set := repotest.Clone(t, gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin())
	missing := func(context.Context, *jobs.Job) error {
		return agent.Fail(forge.FailMissingCLI, "codex is not in PATH")
	}
	if f, left := among(t, set, forge.Command{}, missing); f == nil || f.Reason != forge.FailMissingCLI || !left {
		t.Errorf("left to others: %t, %+v", left, f)
	}
	if err := set.Check(t.Context()); err != nil {
		t.Errorf("what needs no agent is not done: %v", err)
	}
	cmd := forge.Command{To: forge.Key{Project: repotest.Project, Intent: "fix"}}
	if f := set.Do(t.Context(), &cmd, func(forge.Progress) {}, missing); f.Failure() == nil || f.Failure().Reason != forge.FailMissingCLI {
		t.Errorf("alone it says %+v", f)
	}
}
