package implementer

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// byPull returns the command to merge a change by a pull request.
func byPull(number int, rb *forge.Rebase) forge.Command {
	c := merge(number, rb)
	c.Merge().Change.Pull = &forge.PullPolicy{Method: "fast-forward", By: "forge", Branch: "bot/{task}"}
	return c
}

// TestPropose pushes what could be merged to its branch and leaves the base branch where it is.
// On a base branch that moved it is put on the tip and verified there, and its branch follows;
// what another one pushed stays; and once it is merged, by whomever, the next attempt says so.
func TestPropose(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, r.Origin())
	w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
	rb := w.ready("new.txt", "x")
	tip := origin.Head("main")
	const branch = "bot/fix-001"
	got := w.merges(byPull(1, rb))
	if got.Outcome != forge.MergeProposed || got.Branch != branch || got.BaseBranch != "main" || got.Commit != rb.Head || got.Parent != string(tip) {
		t.Fatalf("got %+v", got)
	}
	if origin.Head("main") != tip || origin.Head(branch) != git.OID(got.Commit) {
		t.Fatal("it merged, or pushed another commit")
	}

	person := gittest.At(t, r.Dir)
	person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	person.Git("push", "-q", origin.Dir, "main")
	tip = origin.Head("main")
	got = w.merges(byPull(2, rb))
	if got.Outcome != forge.MergeProposed || got.Parent != string(tip) || got.PatchID != rb.PatchID || origin.Head(branch) != git.OID(got.Commit) ||
		origin.Head(branch+"^") != tip || origin.Head("main") != tip {
		t.Fatalf("got %+v", got)
	}
	if again := w.merges(byPull(3, rb)); again.Commit != got.Commit || again.Outcome != forge.MergeProposed {
		t.Fatalf("again: %+v", again)
	}

	ours := got.Commit
	origin.Git("update-ref", "refs/heads/"+branch, string(tip)) // as a person who pushes to it
	if got = w.merges(byPull(4, rb)); got.Outcome != forge.MergeEdited || got.Branch != branch || got.Commit != "" || origin.Head(branch) != tip {
		t.Fatalf("got %+v", got)
	}

	origin.Git("update-ref", "refs/heads/main", ours) // as a forge that merges it fast-forward
	if got = w.merges(byPull(5, rb)); got.Outcome != forge.MergeDone || got.Commit != ours || got.Parent != string(tip) {
		t.Fatalf("got %+v", got)
	}
}

// TestProposeRefuses has no pull request where there is no forge, and none
// whose branch is the base branch or that of every task.
func TestProposeRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	tip := w.repo.Head("main")
	for n, test := range []struct{ branch, want string }{
		{"bot/{task}", "there is no git origin"}, {"main", "merge.branch"}, {"-{task}", "merge.branch"}, {"bot", "merge.branch"},
	} {
		c := byPull(n+1, rb)
		c.Merge().Change.Pull.Branch = test.branch
		w.want(c)
		fails(t, w.imp.merge(t.Context(), c, silent), forge.FailConfig, test.want)
	}
	if w.repo.Head("main") != tip {
		t.Error("it merged")
	}
}
