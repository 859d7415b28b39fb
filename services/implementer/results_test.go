package implementer

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/implementer/verify"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// forgets has the implementer begin as another process does, which has seen nothing passing.
func (w *world) forgets() {
	w.imp.results = verify.Results{}
}

// rebases verifies a change for its review.
func (w *world) rebases(im *forge.Implementation, change func(*forge.Command)) *forge.Rebase {
	w.t.Helper()
	c := command(forge.StepRebase, 1)
	c.Task.Base, c.Task.Head = im.Base, im.Head
	change(&c)
	rb := forge.As[*forge.Rebase](w.imp.rebase(w.t.Context(), c, silent).Output)
	if rb == nil || verdict.Failing(rb.Verify) != "" {
		w.t.Fatalf("not rebased: %+v", rb)
	}
	return rb
}

// The same tree on the same parent's tree is verified once for a task, whatever
// the commits and however often it is asked.
func TestSameTreeIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "true", nil)
	im := w.implemented(recipe(1, "write", "FILE", "a.txt", "TEXT", "x"))
	nothing := func(*forge.Command) {}
	rb := w.rebases(im, nothing)
	if again := w.rebases(im, nothing); runs() != 1 || again.Tree != rb.Tree || !again.Verify.Passed || len(again.Verify.Runs) != len(rb.Verify.Runs) {
		t.Errorf("for a review: %d runs, %+v", runs(), again.Verify)
	}
	w.repo.Git("commit", "--quiet", "--allow-empty", "-m", "somebody changes nothing")
	w.repo.Write("a.txt", "edited\n")
	if got := w.merges(merge(1, rb)); got.Outcome != forge.MergeDirty || runs() != 1 {
		t.Fatalf("another commit of the same tree: %+v after %d runs", got, runs())
	}
	w.repo.Git("checkout", "-q", "--", "a.txt")
	w.repo.Commit("somebody else", map[string]string{"other.txt": "y\n"})
	w.repo.Write("a.txt", "edited\n")
	if got := w.merges(merge(2, rb)); got.Outcome != forge.MergeDirty || runs() != 2 {
		t.Fatalf("another tree: %+v after %d runs", got, runs())
	}
	w.repo.Git("checkout", "-q", "--", "a.txt")
	if got := w.merges(merge(3, rb)); got.Outcome != forge.MergeDone || runs() != 2 {
		t.Errorf("the merge once more: %+v after %d runs", got, runs())
	}
}

// A pass counts for nothing but what passed: not for another task, another
// definition of the checks, a change that is known to be unsteady, or in
// another process. A pass that took several runs is not kept.
func TestWhatIsVerifiedAgain(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, change := range map[string]func(*world, *forge.Command){
		"another task": func(_ *world, c *forge.Command) { c.Attempt.Task, c.Task.ID = "fix-002", "fix-002" },
		"another check": func(_ *world, c *forge.Command) {
			c.Task.Checks = []forge.Check{{Command: "true", Criterion: 1}}
		},
		"another type":    func(_ *world, c *forge.Command) { c.Intent.Type = "feature" },
		"another process": func(w *world, _ *forge.Command) { w.forgets() },
		"known to be unsteady": func(_ *world, c *forge.Command) {
			c.Input = &forge.RebaseInput{Tried: []forge.CheckRun{
				{Name: verdict.TrialChange, Passed: true},
				{Name: verdict.TrialChange, Command: "make"},
				{Name: verdict.TrialBase, Command: "make"}, // so it is excused, and goes on
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := counted(t, "true", nil)
			im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
			w.rebases(im, func(*forge.Command) {})
			if w.rebases(im, func(c *forge.Command) { change(w, c) }); runs() != 2 {
				t.Errorf("%d runs", runs())
			}
		})
	}
	t.Run("a flaky pass", func(t *testing.T) {
		w, runs := counted(t, "test $n != 1 && test $n != 3", nil)
		im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
		if rb := w.rebases(im, func(*forge.Command) {}); trialsOf(rb.Verify) != "change- change+ base-" {
			t.Fatalf("trials %q", trialsOf(rb.Verify))
		}
		if w.rebases(im, func(*forge.Command) {}); runs() != 4 {
			t.Errorf("%d runs", runs())
		}
	})
}

// A trial runs the commands in any case: what it says may be told of another
// change, as of now. Its pass stands for the merge.
func TestTrialRunsTheCommands(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "true", nil)
	a := w.readyAs("one", "one.txt", "1")
	for i := range 2 {
		if f := w.tries(a).Candidate; f == nil || f.Verify == nil || !f.Verify.Passed || runs() != 2+i {
			t.Fatalf("trial %d: %+v after %d runs", i, f, runs())
		}
	}
	a.Merge().Change.Unverified = true // so that what passed is asked for
	if got := w.merges(a); got.Outcome != forge.MergeDone || runs() != 3 {
		t.Errorf("its merge: %+v after %d runs", got, runs())
	}
}
