package implementer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/decide"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/service"
)

// results takes every result from now on.
func (w *world) results() <-chan forge.Result {
	w.t.Helper()
	c := make(chan forge.Result, 100)
	w.background(func(ctx context.Context) error {
		w.bus.Events.Consume(ctx, decide.Config{}, func(_ context.Context, d *decide.Delivery) error {
			c <- *forge.As[*forge.Result](d.Event.Message)
			return nil
		})
		return nil
	})
	return c
}

// background runs do until the test ends, and waits for its end.
func (w *world) background(do func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
}

// intent journals the intent with these tasks under way, waiting or failed.
func (w *world) intent(status forge.Status, tasks ...forge.TaskSummary) {
	w.t.Helper()
	key := forge.Key{Project: repotest.Project, Intent: "fix"}
	w.journal(key, forge.Record{Summary: forge.Summary{Key: key, Status: status, RunSummary: forge.RunSummary{Tasks: tasks}}})
}

var (
	underWay = forge.TaskSummary{ID: "fix-001", Status: forge.TaskImplementing}
	failed   = forge.TaskSummary{ID: "fix-001", Status: forge.TaskFailed}
)

// diedAfterMoving leaves a change on main that nobody was told of.
func (w *world) diedAfterMoving() git.OID {
	w.t.Helper()
	c := merge(3, w.ready("new.txt", "x"))
	w.want(c)
	w.crashAt("moved")
	dies(w.t, func() { w.imp.merge(w.t.Context(), c, silent) })
	return w.repo.Head("main")
}

func TestReconcileReportsWhatADeadProcessMerged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := w.results()
	merged := w.diedAfterMoving()
	w.intent(forge.StatusExecuting, underWay)
	for range 2 { // as often as it starts, until the task has ended
		if err := w.imp.reconcile(t.Context(), w.repository()); err != nil {
			t.Fatal(err)
		}
	}
	r := wait.For(t, results)
	if r.To.Intent != "fix" || r.Attempt.Task != "fix-001" || r.Attempt.Step != forge.StepMerge || r.Attempt.Number != 3 || r.Replica != "w1" {
		t.Errorf("got %+v", r)
	}
	out := forge.As[*forge.MergeResult](r.Output)
	if out == nil || out.Outcome != forge.MergeDone || out.Commit != string(merged) || out.Parent != string(w.repo.Head("main^")) {
		t.Errorf("got %+v", out)
	}
	if len(w.refs("/merge/")) != 1 {
		t.Error("the merge of a task under way is forgotten")
	}
	w.intent(forge.StatusDone)
	if err := w.imp.reconcile(t.Context(), w.repository()); err != nil {
		t.Fatal(err)
	}
	if len(w.refs("/merge/")) != 0 {
		t.Error("the merge of a task that ended is kept")
	}
}

// PendingMerges of intents that the journal does not know are of a former journal.
func TestReconcileLeavesUnknownIntentsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := w.results()
	w.diedAfterMoving()
	if err := w.imp.reconcile(t.Context(), w.repository()); err != nil {
		t.Fatal(err)
	}
	marker := forge.Result{
		To: forge.Key{Project: repotest.Project, Intent: "marker"}, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1},
		Replica: "w1", Output: &forge.Analysis{NothingToDo: "x"},
	}
	if err := w.bus.Results.Publish(t.Context(), marker); err != nil {
		t.Fatal(err)
	}
	if r := wait.For(t, results); r.Attempt != marker.Attempt {
		t.Errorf("got %+v", r)
	}

	// When an intent of that name begins, they are forgotten.
	w.implemented(recipe(1, "write", "FILE", "other.txt", "TEXT", "y"))
	if left := w.refs("/merge/"); len(left) != 0 {
		t.Errorf("kept %q", left)
	}
}

func TestReconcileGivesBackCheckoutsOfTasksThatEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	dir := filepath.Join(w.repo.Dir, ".forge", "worktrees", "fix-001")
	state := w.repository().StateDir("fix-001")
	w.intent(forge.StatusExecuting, underWay)
	if err := w.imp.reconcile(t.Context(), w.repository()); err != nil || !exists(dir) || !exists(state) {
		t.Fatalf("a checkout in use is gone; %v", err)
	}
	w.intent(forge.StatusBlocked, failed)
	if err := w.imp.reconcile(t.Context(), w.repository()); err != nil || exists(dir) || exists(state) {
		t.Fatalf("a checkout is kept; %v", err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (w *world) worker() *service.Worker {
	return &service.Worker{
		Bus: w.bus, Replica: "w1", Log: w.imp.log, Handlers: w.imp.Handlers(), Parallel: 2, Permits: service.NewPermits(2), Grace: time.Minute,
	}
}

func (w *world) dispatch(key forge.Key, eff forge.Effects) {
	w.t.Helper()
	if err := w.bus.Effects.Dispatch(w.t.Context(), key, eff); err != nil {
		w.t.Fatal(err)
	}
}

// The whole of a task, by commands and results.
func TestWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := w.results()
	w.background(func(ctx context.Context) error { return w.imp.Run(ctx, w.worker()) })
	key := forge.Key{Project: repotest.Project, Intent: "fix"}
	do := func(c forge.Command) forge.Result {
		r := forge.Result{To: c.To, Attempt: c.Attempt}
		machine := r.Machine()
		w.journal(machine, forge.Record{Summary: forge.Summary{
			Key: machine, Status: forge.StatusExecuting, RunSummary: forge.RunSummary{
				Open: []forge.Attempt{c.Attempt}, Tasks: []forge.TaskSummary{underWay},
			},
		}})
		w.dispatch(machine, forge.Effects{Commands: []forge.Command{c}})
		got := wait.For(t, results)
		if got.Failure() != nil || got.Attempt != c.Attempt || got.Replica != "w1" {
			t.Fatalf("got %+v, %+v", got, got.Failure())
		}
		return got
	}
	im := forge.As[*forge.Implementation](do(recipe(1, "write", "FILE", "new.txt", "TEXT", "x")).Output)
	c := command(forge.StepRebase, 1)
	c.Task.Base, c.Task.Head = im.Base, im.Head
	rb := forge.As[*forge.Rebase](do(c).Output)
	merge := forge.As[*forge.MergeResult](do(merge(1, rb)).Output)
	if merge.Outcome != forge.MergeDone || w.repo.Head("main") != git.OID(merge.Commit) {
		t.Fatalf("got %+v", merge)
	}
	w.intent(forge.StatusDone)
	w.dispatch(key, forge.Effects{ReleasedTasks: []forge.TaskID{"fix-001"}})
	wait.Until(t, "the checkout and the merge are given back", func() bool {
		return !exists(filepath.Join(w.repo.Dir, ".forge", "worktrees", "fix-001")) && len(w.refs("/merge/")) == 0
	})
}

// A task is cancelled while its change is merged: that it merged is reported before the
// merge is forgotten.
func TestReleaseOfAFailedTaskThatMerged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	results := w.results()
	merged := w.diedAfterMoving()
	w.intent(forge.StatusCancelled, failed)
	w.imp.release(t.Context(), live.Control{
		To: forge.Key{Project: repotest.Project, Intent: "fix"}, Released: []forge.TaskID{"fix-001"},
	})
	r := wait.For(t, results)
	if out := forge.As[*forge.MergeResult](r.Output); out == nil || out.Commit != string(merged) {
		t.Errorf("got %+v", r)
	}
	if len(w.refs("/merge/")) != 0 {
		t.Error("the merge is kept")
	}
}

// Two replicas, each with its own clone: one implements, the other goes on, and a
// merge of one that died is known to the other.
func TestReplicas(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, r.Origin())
	b := bustest.Start(t)
	replica := func() *world { return worldOn(t, origin, repotest.Clone(t, origin.Dir), b) }
	one, two := replica(), replica()

	im := one.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "one"))
	again := recipe(2, "write", "FILE", "new.txt", "TEXT", "two")
	again.Task.Base, again.Task.Head = im.Base, im.Head
	im = two.implemented(again)
	if im.Commits != 2 {
		t.Fatalf("got %+v", im)
	}
	rb := one.rebased(im)

	person := gittest.At(t, r.Dir)
	person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	person.Git("push", "-q", origin.Dir, "main")
	c := merge(1, rb)
	two.want(c)
	two.crashAt("moved")
	dies(t, func() { two.imp.merge(t.Context(), c, silent) })
	if origin.Show("main", "new.txt") != "one\ntwo" || origin.Show("main", "b.txt") != "c" {
		t.Fatal("it did not be merged at the origin")
	}
	c.Attempt.Claim = 2
	got := one.imp.merge(t.Context(), c, silent)
	out := forge.As[*forge.MergeResult](got.Output)
	if got.Failure() != nil || out.Commit != string(origin.Head("main")) || out.Outcome != forge.MergeDone {
		t.Errorf("got %+v, %+v", got.Failure(), out)
	}

	results := one.results()
	one.intent(forge.StatusBlocked, failed)
	if err := one.imp.reconcile(t.Context(), one.repository()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(out, forge.As[*forge.MergeResult](wait.For(t, results).Output)); diff != "" {
		t.Error(diff)
	}
	if left := origin.Git("for-each-ref", "refs/forge/fix/fix-001/merge"); left != "" {
		t.Errorf("the origin keeps %q", left)
	}
}

// Two replicas merge at once: one moves the branch first, the other says that
// it was overtaken, and follows on top.
func TestReplicasRace(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, r.Origin())
	b := bustest.Start(t)
	one := worldOn(t, origin, repotest.Clone(t, origin.Dir), b)
	two := worldOn(t, origin, repotest.Clone(t, origin.Dir), b)
	c := merge(1, one.ready("new.txt", "x"))
	other := r.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	two.want(c)
	two.imp.crash = func(at string) {
		if at == "kept" && origin.Head("main") != other { // between looking and pushing
			r.Git("push", "-q", origin.Dir, "main")
		}
	}
	got := two.imp.merge(t.Context(), c, silent)
	if out := forge.As[*forge.MergeResult](got.Output); out == nil || out.Outcome != forge.MergeOvertaken || origin.Head("main") != other {
		t.Fatalf("got %+v, %+v", got.Failure(), out)
	}
	c.Attempt.Claim = 2
	two.want(c)
	got = two.imp.merge(t.Context(), c, silent)
	if out := forge.As[*forge.MergeResult](got.Output); got.Failure() != nil || out.Parent != string(other) || origin.Head("main^") != other {
		t.Errorf("got %+v, %+v", got.Failure(), out)
	}
	if origin.Show("main", "b.txt") != "c" || origin.Show("main", "new.txt") != "x" {
		t.Error("a change got lost")
	}
}

// A replica dies after it has moved the branch, and another one says so. When
// the task is over, that one forgets the merge too.
func TestTheMergeOfADeadReplicaIsForgotten(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, r.Origin())
	b := bustest.Start(t)
	one, two := worldOn(t, origin, repotest.Clone(t, origin.Dir), b), worldOn(t, origin, repotest.Clone(t, origin.Dir), b)
	c := merge(1, one.ready("new.txt", "x"))
	one.want(c)
	one.crashAt("moved")
	dies(t, func() { one.imp.merge(t.Context(), c, silent) })
	c.Attempt.Claim = 2
	got := two.imp.merge(t.Context(), c, silent)
	if out := forge.As[*forge.MergeResult](got.Output); got.Failure() != nil || out.Outcome != forge.MergeDone || out.Commit != string(origin.Head("main")) {
		t.Fatalf("got %+v, %+v", got.Failure(), out)
	}
	two.intent(forge.StatusDone)
	two.imp.release(t.Context(), live.Control{To: c.To, Released: []forge.TaskID{"fix-001"}})
	if left := origin.Git("for-each-ref", "refs/forge/_heads", "refs/forge/fix/fix-001/merge"); left != "" {
		t.Errorf("the origin keeps %q", left)
	}
}

// A change that does not land is named from then on, so every replica finds its
// commit at the origin.
func TestAChangeThatDoesNotLandIsKept(t *testing.T) {
	t.Parallel()
	strict := strings.Replace(settings, "verify:", "verify:\n  - test ! -e new.txt", 1)
	for outcome, meanwhile := range map[forge.MergeOutcome]map[string]string{
		forge.MergeVerifyFailed: {"pfl-forge.yaml": strict},
		forge.MergePatchChanged: {"CLAUDE.md": "See @new.txt"},
	} {
		r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
		origin := gittest.At(t, r.Origin())
		w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
		c := merge(1, w.ready("new.txt", "x"))
		r.Commit("somebody else", meanwhile)
		r.Git("push", "-q", origin.Dir, "main")
		got := w.merges(c)
		if got.Outcome != outcome || got.Candidate == nil {
			t.Fatalf("%s: got %+v", outcome, got)
		}
		if kept := origin.Git("for-each-ref", "--points-at", got.Candidate.Head, "--format=%(refname)", "refs/forge/"); strings.Count(kept, "refs/") != 2 {
			t.Errorf("%s: the origin keeps %q of it", outcome, kept)
		}
	}
}
