package implementer

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// TestWhatAForgeMerged: each way of a forge to merge what was verified is proved by parent
// and tree, whatever the commit is called. What it merged on another parent, or with
// another tree, is told as merged and unproven; what is not on the base branch is no merge.
func TestWhatAForgeMerged(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, test := range map[string]struct {
		// merge returns the commit that the forge put on the base branch; tip is what that was.
		merge    func(origin gittest.Repo, tip, head string) string
		unproven string
	}{
		"fast-forward": {func(_ gittest.Repo, _, head string) string { return head }, ""},
		"squash":       {func(o gittest.Repo, tip, head string) string { return commitTree(o, head+"^{tree}", tip) }, ""},
		"merge":        {func(o gittest.Repo, tip, head string) string { return commitTree(o, head+"^{tree}", tip, head) }, ""},
		"on another tip": {func(o gittest.Repo, tip, head string) string {
			return commitTree(o, head+"^{tree}", commitTree(o, tip+"^{tree}", tip))
		}, "its parent is"},
		"a merge commit on another tip": {func(o gittest.Repo, tip, head string) string {
			return commitTree(o, head+"^{tree}", commitTree(o, tip+"^{tree}", tip), head)
		}, "its parent is"},
		"another tree": {func(o gittest.Repo, tip, _ string) string { return commitTree(o, tip+"^{tree}", tip) }, "its tree is"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
			origin := gittest.At(t, r.Origin())
			w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
			rb := w.ready("new.txt", "x")
			tip := string(origin.Head("main"))
			proposed := w.merges(byPull(1, rb))
			commit := test.merge(origin, tip, proposed.Commit)
			origin.Git("update-ref", "refs/heads/main", commit)
			c := byPull(1, rb)
			c.Attempt.Claim++
			in := c.Merge()
			in.Landed = &forge.Landing{Commit: commit, Head: proposed.Commit, Parent: proposed.Parent, Tree: proposed.Tree}
			c.Input = &in
			got := w.merges(c)
			proven := got.Unproven == "" && test.unproven == "" || test.unproven != "" && strings.HasPrefix(got.Unproven, test.unproven)
			if got.Outcome != forge.MergeDone || got.Commit != commit || !proven {
				t.Fatalf("got %+v", got)
			}
			if string(origin.Head("main")) != commit {
				t.Error("it moved the base branch")
			}
		})
	}
}

// TestMergedByTheNameOfWhatWasProposed: a forge, or who tells it that a branch is
// merged, may name the commit that was proposed where the base branch has it by a
// merge commit alone. What that merge commit is proves it, whatever was pushed on top.
func TestMergedByTheNameOfWhatWasProposed(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, r.Origin())
	w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
	rb := w.ready("new.txt", "x")
	tip := string(origin.Head("main"))
	proposed := w.merges(byPull(1, rb))
	other := commitTree(origin, tip+"^{tree}", tip)
	for name, test := range map[string]struct{ onto, tree, unproven string }{
		"on its parent":      {tip, proposed.Commit, ""},
		"on another tip":     {other, proposed.Commit, "its parent is"},
		"without the change": {tip, tip, "its tree is"},
	} {
		t.Run(name, func(t *testing.T) {
			merge := commitTree(origin, test.tree+"^{tree}", test.onto, proposed.Commit)
			origin.Git("update-ref", "refs/heads/main", commitTree(origin, merge+"^{tree}", commitTree(origin, merge+"^{tree}", merge)))
			c := byPull(1, rb)
			c.Attempt.Claim++
			in := c.Merge()
			in.Landed = &forge.Landing{Commit: proposed.Commit, Head: proposed.Commit, Parent: proposed.Parent, Tree: proposed.Tree}
			c.Input = &in
			got := w.merges(c)
			proven := (got.Unproven == "") == (test.unproven == "") && strings.HasPrefix(got.Unproven, test.unproven)
			if got.Outcome != forge.MergeDone || got.Commit != merge || !proven {
				t.Errorf("got %+v, want %s", got, merge)
			}
		})
	}
}

// TestForgeThatLiesAboutAMerge is not believed: a commit that the base branch
// does not have is not merged.
func TestForgeThatLiesAboutAMerge(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, r.Origin())
	w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
	rb := w.ready("new.txt", "x")
	proposed := w.merges(byPull(1, rb))
	for _, commit := range []string{proposed.Commit, strings.Repeat("ab", 20), "-x"} {
		c := byPull(1, rb)
		c.Attempt.Claim++
		in := c.Merge()
		in.Landed = &forge.Landing{Commit: commit, Head: proposed.Commit, Parent: proposed.Parent, Tree: proposed.Tree}
		c.Input = &in
		w.want(c)
		if got := w.imp.merge(t.Context(), c, silent); got.Failure() == nil {
			t.Errorf("%s counts as merged: %+v", commit, got.Output)
		}
	}
}

// TestMergedOnAnotherParentMeanwhile: the next merge of a change does not take
// a merge commit on another parent for the merge that it made. All of the
// change is there, and so it is merged as what is there.
func TestMergedOnAnotherParentMeanwhile(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, r.Origin())
	w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
	rb := w.ready("new.txt", "x")
	tip := string(origin.Head("main"))
	proposed := w.merges(byPull(1, rb))
	onto := commitTree(origin, tip+"^{tree}", tip)
	merge := commitTree(origin, proposed.Commit+"^{tree}", onto, proposed.Commit)
	origin.Git("update-ref", "refs/heads/main", merge)
	got := w.merges(byPull(2, rb))
	if got.Outcome != forge.MergeDone || got.Commit != merge {
		t.Fatalf("got %+v, want what is on the base branch, %s", got, merge)
	}
	if string(origin.Head("bot/fix-001")) != proposed.Commit {
		t.Error("its branch was moved")
	}
}

// commitTree makes a commit as a forge does.
func commitTree(o gittest.Repo, tree string, parents ...string) string {
	args := []string{"-c", "user.name=forge", "-c", "user.email=forge@localhost", "commit-tree", tree, "-m", "merged by a forge"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return strings.TrimSpace(o.Git(args...))
}
