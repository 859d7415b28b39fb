package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

func get(t *testing.T, set *jobs.Set) *jobs.Repository {
	t.Helper()
	r, err := set.Get(repotest.Project)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// do runs work as a command of task fix-001.
func do(t *testing.T, set *jobs.Set, work func(context.Context, *jobs.Job) error) forge.Result {
	t.Helper()
	cmd := &forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"},
		Attempt:   forge.Attempt{Task: "fix-001", Step: forge.StepRebase, Number: 1, Claim: 1},
	}
	return set.Do(t.Context(), cmd, func(forge.Progress) {}, work)
}

func nothing(context.Context, *jobs.Job) error { return nil }

func TestBaseBranch(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"a.txt": "a\n"})
	r.Git("branch", "release")
	tip := func(set *jobs.Set) git.OID {
		t.Helper()
		o, err := get(t, set).Tip(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	base := func(set *jobs.Set) git.Branch {
		t.Helper()
		b, err := get(t, set).Base(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return b
	}

	checkedOut := repotest.Local(t, r.Dir)
	r.Git("checkout", "-q", "-b", "elsewhere") // later, which changes nothing
	r.Commit("elsewhere", nil)
	if got := base(checkedOut); got != "main" || tip(checkedOut) != r.Head("main") {
		t.Errorf("the base is %q", got)
	}
	r.Git("checkout", "-q", "main")
	r.Commit("configure", map[string]string{"pfl-forge.yaml": "base_branch: release\n"})
	named := repotest.Clone(t, r.Origin())
	if got := base(named); got != "release" || tip(named) != r.Head("release") {
		t.Errorf("the base is %q", got)
	}

	origin := gittest.At(t, gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin())
	origin.Git("branch", "trunk")
	origin.Git("symbolic-ref", "HEAD", "refs/heads/trunk")
	if got := base(repotest.Clone(t, origin.Dir)); got != "trunk" {
		t.Errorf("the origin's HEAD is on trunk, the base is %q", got)
	}
}

func TestTipFollowsTheOrigin(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"a.txt": "a\n"})
	origin := r.Origin()
	repo := get(t, repotest.Clone(t, origin))
	next := r.Commit("next", map[string]string{"a.txt": "b\n"})
	r.Git("push", "-q", origin, "main")
	if got, err := repo.Tip(t.Context()); got != next || err != nil {
		t.Errorf("%s, %v; want %s", got, err, next)
	}
}

// The configuration is that of a commit, whatever a person or an agent has in files.
func TestConfigIsOfTheCommit(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"a.txt": "a\n"})
	repo := get(t, repotest.Local(t, r.Dir))
	agents := func(rev string) string {
		t.Helper()
		c, err := repo.Config(t.Context(), r.Head(rev))
		if err != nil {
			t.Fatal(err)
		}
		return c.Agent
	}
	r.Write("pfl-forge.yaml", "agent: nonsense")
	if got := agents("main"); got != "claude" {
		t.Errorf("without a file the agent is %q", got)
	}
	r.Commit("configure", map[string]string{"pfl-forge.yaml": "agent: recipe\n"})
	r.Write("pfl-forge.yaml", "agent: nonsense")
	if before, now := agents("main^"), agents("main"); before != "claude" || now != "recipe" {
		t.Errorf("the agent was %q and is %q", before, now)
	}
}

// A configuration that is wrong at the start stops nobody else's work, and is found
// to be mended without a restart.
func TestBrokenConfiguration(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "agent: recipe\nbase_brunch: x\n"})
	r.Git("branch", "release")
	set := repotest.Local(t, r.Dir)
	got := do(t, set, nothing)
	if got.Failure() == nil || got.Failure().Reason != forge.FailConfig || !strings.Contains(got.Failure().Message, "pfl-forge.yaml:2: base_brunch") {
		t.Errorf("got %+v", got.Failure())
	}
	r.Git("checkout", "-q", "release")
	r.Commit("mend", map[string]string{"pfl-forge.yaml": "agent: recipe\n"})
	r.Git("checkout", "-q", "main")
	r.Commit("mend", map[string]string{"pfl-forge.yaml": "agent: recipe\nbase_branch: release\n"})
	got = do(t, set, func(_ context.Context, j *jobs.Job) error {
		if j.Tip != r.Head("release") {
			t.Errorf("the tip is %s", j.Tip)
		}
		return nil
	})
	if got.Failure() != nil {
		t.Errorf("got %+v", got.Failure())
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": `
max_review_retries: 0
policy: {trusted_origins: [ci], max_depth: 1}
reflection: {enabled: false, max_generation: 3, proposals_a_day: 4, proposals_a_time: 6}
timeouts: {implement: 1h}
`})
	c, err := get(t, repotest.Local(t, r.Dir)).Config(t.Context(), r.Head("main"))
	if err != nil {
		t.Fatal(err)
	}
	want := forge.DefaultPolicy()
	want.ProtectedPaths = c.Policy.ProtectedPaths
	want.MaxReviewRetries, want.TrustedOrigins, want.AttemptTimeout = 0, []string{"ci"}, 70*time.Minute
	want.MaxDepth, want.Approvals.Count, want.MergeParallel = 1, 1, 4
	want.Budget = forge.Budget{IntentUSD: config.DefaultIntentUSD, DayUSD: config.DefaultDayUSD}
	want.Reflection = forge.ReflectionPolicy{Off: true, MaxGeneration: 3, ProposalsADay: 4, ProposalsATime: 6}
	if diff := cmp.Diff(&want, c.Rules()); diff != "" {
		t.Error(diff)
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	overloaded := agent.Fail(forge.FailOverloaded, "busy")
	for _, tt := range []struct {
		err     error
		reason  forge.FailureReason
		message string
	}{
		{fmt.Errorf("call: %w", overloaded), forge.FailOverloaded, "busy"},
		{fmt.Errorf("x: %w", &git.WorkError{Fault: git.Unsafe, Path: "a/b", Detail: "is odd"}), forge.FailUnsafe, `unsafe work: "a/b" is odd`},
		{fmt.Errorf("git: %w", context.Canceled), forge.FailKilled, "git: context canceled"},
		{git.ErrNoBranch, forge.FailRepository, git.ErrNoBranch.Error()},
		{errors.New("a\x1b[31mb"), forge.FailRepository, "ab"},
	} {
		if got := jobs.Failure(tt.err); got.Reason != tt.reason || got.Message != tt.message {
			t.Errorf("%v: got %+v", tt.err, got)
		}
	}
}

func TestAFailureComesWithoutAPayload(t *testing.T) {
	t.Parallel()
	set := repotest.Local(t, gittest.New(t, nil).Dir)
	got := do(t, set, func(_ context.Context, j *jobs.Job) error {
		j.Result.Output = &forge.Rebase{}
		j.Result.Usage.Calls = 1
		return errors.New("no")
	})
	if forge.As[*forge.Rebase](got.Output) != nil || got.Failure() == nil || got.Usage.Calls != 1 {
		t.Errorf("got %+v", got)
	}
}

// A new life ends what the one before left running, and removes its scratch files
// and its views; checkouts of tasks stay.
func TestANewLifeCleansUp(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"a.txt": "a\n"})
	state := t.TempDir()
	src := jobs.Source{Project: repotest.Project, Path: r.Dir}
	host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.DiscardHandler)}
	first, err := jobs.OpenSet(t.Context(), host, []jobs.Source{src})
	if err != nil {
		t.Fatal(err)
	}
	pool := get(t, first).Pool
	if _, err := pool.View(t.Context(), "fix-001-verify", r.Head("main")); err != nil {
		t.Fatal(err)
	}
	task, err := pool.Prepare(t.Context(), "fix-001", r.Head("main"))
	if err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(state, "scratch", "call-1", "cache")
	if err := errors.Join(os.MkdirAll(scratch, 0o700), os.WriteFile(filepath.Join(scratch, "f"), nil, 0o400), os.Chmod(scratch, 0o500)); err != nil {
		t.Fatal(err)
	}
	ran := make(chan struct{})
	started := make(chan struct{}, 1)
	go func() {
		defer close(ran)
		_, _ = process.Run(context.WithoutCancel(t.Context()), process.Command{
			Path: "/bin/sh", Args: []string{"-c", "echo on; exec sleep 600"}, Dir: state, Env: process.Environment(state),
			Owner: process.NewOwner(state), // one that does not hold the lock, as if its supervisor were gone

			Line: func(process.Stream, []byte) { started <- struct{}{} },
		})
	}()
	<-started
	patience := 300 * time.Millisecond
	wait.Until(t, "it is told of the former life that goes on", func() bool {
		_, err := jobs.OpenSet(wait.Briefly(t, patience), host, []jobs.Source{src})
		if err == nil {
			t.Fatal("two lives go on")
		}
		patience *= 2
		return errors.Is(err, git.ErrBusy)
	})
	if _, err := os.Stat(scratch); err != nil {
		t.Error("scratch files of a process that lives are gone")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	repotest.Open(t, state, src)
	wait.For(t, ran) // no process of the former life goes on
	worktrees := filepath.Dir(task.Dir())
	for path, want := range map[string]bool{
		filepath.Join(state, "scratch"): false, filepath.Join(worktrees, "fix-001-verify"): false, task.Dir(): true,
	} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestOpenNamesTheProject(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	host := jobs.Host{StateDir: state, Owner: process.NewOwner(state), Log: slog.New(slog.DiscardHandler)}
	_, err := jobs.OpenSet(t.Context(), host, []jobs.Source{{Project: "shop", Path: t.TempDir()}})
	if !errors.Is(err, git.ErrNotRepository) || !strings.Contains(err.Error(), "project shop: ") {
		t.Errorf("got %v", err)
	}
	host.StateDir = "relative"
	if _, err := jobs.OpenSet(t.Context(), host, nil); err == nil {
		t.Error("a relative state directory is taken")
	}
}

// A project whose origin is away keeps neither the service nor other projects from
// working, and is served once the origin is back.
func TestAnOriginThatIsAway(t *testing.T) {
	t.Parallel()
	url := gittest.New(t, map[string]string{"a.txt": "a\n"}).Origin()
	hide := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	hide(url, url+".away")
	set := repotest.Clone(t, url)
	prepared := 0
	err := set.Prepare(t.Context(), func(ctx context.Context, r *jobs.Repository) error {
		prepared++
		_, err := r.Tip(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Get(repotest.Project); err == nil {
		t.Error("it is open")
	}
	res := do(t, set, nothing)
	if f := res.Failure(); f == nil || f.Reason != forge.FailOrigin || !strings.Contains(f.Message, url) {
		t.Errorf("got %+v", f)
	}
	hide(url+".away", url)
	for range 2 {
		res := do(t, set, nothing)
		if f := res.Failure(); f != nil {
			t.Fatal(f)
		}
	}
	if prepared != 1 {
		t.Errorf("prepared %d times", prepared)
	}

	hide(url, url+".away") // while it is open, and something has to be prepared
	err = set.Prepare(t.Context(), func(ctx context.Context, r *jobs.Repository) error {
		prepared++
		_, err := r.Tip(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	hide(url+".away", url)
	res = do(t, set, nothing)
	if f := res.Failure(); f != nil || prepared != 3 {
		t.Errorf("got %+v, prepared %d times", f, prepared)
	}
}

func TestLockIsByName(t *testing.T) {
	t.Parallel()
	repo := get(t, repotest.Local(t, gittest.New(t, nil).Dir))
	unlock, err := repo.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := repo.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := repo.Lock(ctx, "a"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	got := make(chan error)
	go func() {
		unlock, err := repo.Lock(t.Context(), "a")
		if err == nil {
			unlock()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestIDsAreChecked(t *testing.T) {
	t.Parallel()
	set := repotest.Local(t, gittest.New(t, nil).Dir)
	for _, cmd := range []*forge.Command{
		{To: forge.Key{Project: repotest.Project, Intent: "../x"}},
		{To: forge.Key{Project: repotest.Project, Intent: "fix"}, Attempt: forge.Attempt{Task: "fix-001/../../x"}},
	} {
		got := set.Do(t.Context(), cmd, func(forge.Progress) {}, func(context.Context, *jobs.Job) error {
			t.Errorf("%+v is done", cmd.To)
			return nil
		})
		if got.Failure() == nil || got.Failure().Reason != forge.FailInvalidOutput {
			t.Errorf("got %+v", got.Failure())
		}
	}
}
