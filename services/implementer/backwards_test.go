package implementer

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// TestBaseMovedBackwards: a commit of ours is taken off the base branch of an
// origin. A change that was verified on it lands where the branch is now, the
// other one is not put back, and another replica goes on from there as well.
func TestBaseMovedBackwards(t *testing.T) {
	t.Parallel()
	one, two := sharing(t)
	begin := one.repo.Head("main")
	if got := one.merges(merge(1, one.ready("first.txt", "x"))); got.Outcome != forge.MergeDone {
		t.Fatalf("got %+v", got)
	}
	next := func(w *world, intent forge.IntentID, file string) forge.Command {
		im := w.implemented(ofIntent(intent, recipe(1, "write", "FILE", file, "TEXT", "x")))
		c := ofIntent(intent, command(forge.StepRebase, 1))
		c.Task.Base, c.Task.Head = im.Base, im.Head
		r := w.imp.rebase(t.Context(), c, silent)
		rb := forge.As[*forge.Rebase](r.Output)
		if rb == nil {
			t.Fatalf("%s: %+v", intent, r.Output)
		}
		m := ofIntent(intent, merge(1, rb))
		m.Merge().Change.Task = m.Attempt.Task
		return m
	}
	m := next(one, "second", "second.txt")
	if m.Merge().Change.Base != string(one.repo.Head("main")) {
		t.Fatalf("it was verified on %s", m.Merge().Change.Base)
	}
	one.repo.Git("update-ref", "refs/heads/main", string(begin))
	if got := one.merges(m); got.Outcome != forge.MergeDone || got.Parent != string(begin) {
		t.Errorf("got %+v, want it on %s", got, begin)
	}
	if got := two.merges(next(two, "third", "third.txt")); got.Outcome != forge.MergeDone || one.repo.Head("main~2") != begin {
		t.Errorf("of another replica: %+v", got)
	}
	if files := one.repo.Git("ls-tree", "--name-only", "main"); files != "a.txt\npfl-forge.yaml\nsecond.txt\nthird.txt" {
		t.Errorf("the base branch holds\n%s", files)
	}
}
