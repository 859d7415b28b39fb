package implementer

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

func TestImplementCommitsWhatARecipeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tip := string(w.repo.Head("main"))
	r := w.implement(recipe(1, "write", "FILE", "new.txt", "TEXT", "hello"))
	im := forge.As[*forge.Implementation](r.Output)
	if r.Failure() != nil || im.Base != tip || im.Commits != 1 || im.Leftover != "" || im.Unchanged || r.Agent != "recipe" || r.Usage.Calls != 1 {
		t.Fatalf("got %+v, %+v", r, im)
	}
	if diff := cmp.Diff([]string{"new.txt"}, im.Files); diff != "" {
		t.Error(diff)
	}
	want := "Write a file\n\nFix it\n\nForge-Project: shop\nForge-Intent: fix\nForge-Task: fix-001"
	if diff := cmp.Diff(want, w.repo.Git("log", "-1", "--format=%B", im.Head)); diff != "" {
		t.Error(diff)
	}
	if got := w.repo.Show(im.Head, "new.txt"); got != "hello" {
		t.Errorf("new.txt is %q", got)
	}
	if len(w.refs("fix-001/1/")) != 1 {
		t.Errorf("the head is kept under %q", w.refs(""))
	}
	if w.repo.Head("main") != w.repo.Head(tip) || w.repo.Git("status", "--porcelain", "--", "a.txt", "new.txt") != "" {
		t.Error("the person's repository changed")
	}
}

func TestImplementKeepsCommitsOfARecipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	im := w.implemented(recipe(1, "commits"))
	if im.Commits != 2 || w.repo.Show(im.Head, "two.txt") != "two" || w.repo.Show(im.Head+"^", "one.txt") != "one" {
		t.Errorf("got %+v", im)
	}
}

func TestImplementReportsAnEmptyAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if im := w.implemented(recipe(1, "nothing")); im.Commits != 0 || im.Unchanged || im.Head != im.Base {
		t.Errorf("got %+v", im)
	}
	if im := w.implemented(recipe(2, "fine")); im.Commits != 0 || !im.Unchanged {
		t.Errorf("allow_empty: got %+v", im)
	}
}

// Commits that change no file are no change, whatever they say: nothing would be verified,
// reviewed and merged. Nor are commits that take the change back.
func TestEmptyCommitsAreNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if im := w.implemented(recipe(1, "hollow")); im.Commits != 0 || im.Unchanged || im.Head != im.Base {
		t.Errorf("got %+v", im)
	}
	first := w.implemented(recipe(2, "write", "FILE", "new.txt", "TEXT", "one"))
	again := recipe(3, "hollow")
	again.Task.Base, again.Task.Head = first.Base, first.Head
	hollow := w.implemented(again)
	if hollow.Commits != 0 || hollow.Head != first.Head {
		t.Errorf("on top of a change: got %+v", hollow)
	}
	more := recipe(4, "write", "FILE", "new.txt", "TEXT", "two")
	more.Task.Base, more.Task.Head = hollow.Base, hollow.Head
	second := w.implemented(more)
	if second.Commits == 0 || w.repo.Show(second.Head, "new.txt") != "one\ntwo" {
		t.Errorf("after it: got %+v", second)
	}
	back := recipe(5, "reverts")
	back.Task.Base, back.Task.Head = second.Base, second.Head
	if im := w.implemented(back); im.Commits != 0 || im.Unchanged || im.Head != im.Base {
		t.Errorf("taken back: got %+v", im)
	}
}

// Rework goes on in the same checkout, on top of the commits that were rejected.
func TestReworkGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "one"))
	again := recipe(2, "write", "FILE", "new.txt", "TEXT", "two")
	again.Task.Base, again.Task.Head, input(&again).Feedback = first.Base, first.Head, "more"
	second := w.implemented(again)
	if second.Base != first.Base || second.Commits != 2 || w.repo.Show(second.Head, "new.txt") != "one\ntwo" {
		t.Errorf("got %+v", second)
	}

	// One that adds nothing is empty, though the branch has commits; and not
	// done, though the recipe may change nothing.
	idle := recipe(3, "fine")
	idle.Task.Base, idle.Task.Head = second.Base, second.Head
	if im := w.implemented(idle); im.Commits != 0 || im.Unchanged || im.Head != second.Head {
		t.Errorf("got %+v", im)
	}
}

func TestReworkOfAnotherReplicasCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "one"))
	w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	rb := w.rebased(first) // to where the checkout is not
	again := recipe(2, "feedback")
	again.Task.Base, again.Task.Head, input(&again).Feedback = rb.Base, rb.Head, "it was wrong"
	im := w.implemented(again)
	if im.Base != rb.Base || im.Commits != 2 || w.repo.Show(im.Head, "said.txt") != "it was wrong2" {
		t.Errorf("got %+v, %q", im, w.repo.Show(im.Head, "said.txt"))
	}
}

func TestFreshStartsAtTheTip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "one"))
	tip := w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	again := recipe(2, "write", "FILE", "other.txt", "TEXT", "two")
	again.Task.Base, again.Task.Head, input(&again).Fresh = first.Base, first.Head, true
	im := w.implemented(again)
	if im.Base != string(tip) || im.Commits != 1 {
		t.Errorf("got %+v", im)
	}
	if diff := cmp.Diff([]string{"other.txt"}, im.Files); diff != "" {
		t.Error(diff)
	}
}

func TestAFailedAttemptLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.implement(recipe(1, "fails"))
	fails(t, r, forge.FailCrashed, "exited with status 3:\nsorry")
	left := w.refs("leftover")
	if len(left) != 1 || w.repo.Show(left[0], "half.txt") != "half" {
		t.Errorf("kept %q", left)
	}
}

func TestUnsafeWorkIsAFailureThatNamesThePath(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fails(t, w.implement(recipe(1, "link")), forge.FailUnsafe, `"here"`)
	if left := w.refs("leftover"); len(left) != 1 {
		t.Errorf("kept %q", left)
	}
}

func TestConfigErrorsNameFileAndLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Commit("break the configuration", map[string]string{"pfl-forge.yaml": "verify: []\nrecipe: {}\n"})
	fails(t, w.implement(recipe(1, "write")), forge.FailConfig, "pfl-forge.yaml:2")
}

func TestAnUnknownProjectIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := recipe(1, "write")
	c.To.Project = "other"
	fails(t, w.implement(c), forge.FailConfig, `"other" is not served here`)
}

func TestBriefIsInTheCheckoutAndNeverCommitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := recipe(1, "write", "FILE", "new.txt", "TEXT", "x")
	c.Task.Plan, input(&c).Reviews = "write it\nwell", []forge.Review{{Head: "old", Verdict: forge.VerdictRejected, Issues: []string{"no"}}}
	im := w.implemented(c)
	dir := filepath.Join(w.repo.Dir, ".forge", "worktrees", "fix-001", ".forge")
	task, err := os.ReadFile(filepath.Join(dir, "task.yaml"))
	if err != nil || !strings.Contains(string(task), "plan: |-\n  write it\n  well\n") {
		t.Errorf("%s, %v", task, err)
	}
	review, err := os.ReadFile(filepath.Join(dir, "review.yaml"))
	if want := "head: old\nverdict: rejected\nissues:\n  - \"no\"\n"; string(review) != want || err != nil {
		t.Errorf("%s, %v", review, err)
	}
	if files := w.repo.Git("ls-tree", "--name-only", im.Head); strings.Contains(files, ".forge") {
		t.Errorf("committed %q", files)
	}
}

// crashAt makes the implementer die at a point, once.
func (w *world) crashAt(point string) {
	w.imp.crash = func(at string) {
		if at == point {
			w.imp.crash = func(string) {}
			panic("crash at " + at)
		}
	}
}

// dies runs what has to end in a crash.
func dies(t testing.TB, run func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Fatal("it did not crash")
		}
	}()
	run()
}

// The process dies after the agent has ended: nothing is run again.
func TestRedeliveryAfterTheAgentEndedOnlyReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := recipe(1, "write", "FILE", "new.txt", "TEXT", "once")
	w.crashAt("ended")
	dies(t, func() { w.implement(c) })
	r := w.implement(c)
	first := forge.As[*forge.Implementation](r.Output)
	if r.Failure() != nil || first.Commits != 1 || w.repo.Show(first.Head, "new.txt") != "once" {
		t.Fatalf("got %+v", r)
	}
	if r.Agent != "recipe" || r.Usage.Calls != 1 {
		t.Errorf("what the agent used is lost: %+v", r)
	}
	if again := forge.As[*forge.Implementation](w.implement(c).Output); cmp.Diff(first, again) != "" {
		t.Errorf("a further delivery says %+v", again)
	}
}

func TestRedeliveryAfterAFailureReportsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := recipe(1, "fails")
	w.crashAt("ended")
	dies(t, func() { w.implement(c) })
	fails(t, w.implement(c), forge.FailCrashed, "sorry")
	if left := w.refs("leftover"); len(left) != 1 {
		t.Errorf("kept %q", left)
	}
}

// stops has the process stopped while the slow recipe runs.
func (w *world) stops(c forge.Command) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	begun := filepath.Join(w.repo.Dir, ".forge", "worktrees", "fix-001", "begun.txt")
	go func() {
		wait.Poll(ctx, func() bool { text, err := os.ReadFile(begun); return err == nil && len(text) > 0 })
		cancel()
	}()
	fails(w.t, w.imp.implement(ctx, c, silent), forge.FailKilled, "")
	if left := w.refs("leftover"); len(left) != 1 || w.repo.Show(left[0], "begun.txt") != "begun" {
		w.t.Fatalf("kept %q", left)
	}
}

// The process is stopped while the agent works: its work is kept, and the next
// delivery runs the agent in a clean checkout.
func TestRedeliveryOfAStoppedAttemptStartsClean(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stops(recipe(1, "slow"))
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x")) // the same attempt, with a recipe that ends
	if diff := cmp.Diff([]string{"new.txt"}, im.Files); diff != "" || im.Commits != 1 {
		t.Errorf("%+v\n%s", im, diff)
	}
}

func TestRedeliveryOfStoppedReworkStartsClean(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "one"))
	rework := func(name string, with ...string) forge.Command {
		c := recipe(2, name, with...)
		c.Task.Base, c.Task.Head = first.Base, first.Head
		return c
	}
	w.stops(rework("slow"))
	im := w.implemented(rework("write", "FILE", "new.txt", "TEXT", "two"))
	if diff := cmp.Diff([]string{"new.txt"}, im.Files); diff != "" || im.Commits != 2 || im.Base != first.Base {
		t.Errorf("%+v\n%s", im, diff)
	}
}

// The process dies while the agent works, having committed: the commits are kept
// before the checkout is made afresh.
func TestRedeliveryOfADeadAttemptKeepsItsCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.repository()
	c, err := r.Pool.Prepare(t.Context(), "fix-001", w.repo.Head("main"))
	if err != nil {
		t.Fatal(err)
	}
	n := checkpoint{path: filepath.Join(r.StateDir("fix-001"), "attempt.json"), Number: 1, Base: c.Start(), From: c.Start()}
	if err := n.write(); err != nil {
		t.Fatal(err)
	}
	agent := gittest.At(t, c.Dir())
	lost := agent.Commit("half the work", map[string]string{"half.txt": "half\n"})
	agent.Write("more.txt", "more\n")

	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	if diff := cmp.Diff([]string{"new.txt"}, im.Files); diff != "" || im.Commits != 1 {
		t.Errorf("%+v\n%s", im, diff)
	}
	w.repo.Git("cat-file", "-e", string(lost))
	left := w.refs("leftover")
	if len(left) != 1 || w.repo.Show(left[0], "more.txt") != "more" || w.repo.Show(left[0], "half.txt") != "half" {
		t.Errorf("kept %q", left)
	}
}

func TestIDsOfEveryLength(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := recipe(1, "write", "FILE", "new.txt", "TEXT", "x")
	c.To.Intent = forge.IntentID(strings.Repeat("x", forge.MaxIDLength))
	c.Attempt.Task = forge.NewTaskID(c.To.Intent, 1000)
	im := w.implemented(c)
	rebase := forge.Command{
		BudgetUSD: 5,
		To:        c.To, Attempt: forge.Attempt{Task: c.Attempt.Task, Step: forge.StepRebase, Number: 1, Claim: 1},
		Task: forge.Task{Base: im.Base, Head: im.Head}, Input: &forge.RebaseInput{},
	}
	if r := w.imp.rebase(t.Context(), rebase, silent); r.Failure() != nil || !forge.As[*forge.Rebase](r.Output).Verify.Passed {
		t.Errorf("%+v", r.Failure())
	}
}
