package implementer

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

func TestRebase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	tip := w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	rb := w.rebased(im)
	if rb.Base != string(tip) || rb.Tree != w.repo.Git("rev-parse", rb.Head+"^{tree}") || rb.PatchID == "" || w.repo.Head(rb.Head+"^") != tip {
		t.Errorf("got %+v", rb)
	}
	if rb.Verify == nil || !rb.Verify.Passed || len(w.refs(git.OID(rb.Head).Short())) != 1 {
		t.Errorf("got %+v, kept %q", rb.Verify, w.refs(""))
	}
	if diff := cmp.Diff([]string{"new.txt"}, rb.Files); diff != "" {
		t.Error(diff)
	}
}

func TestRebaseReportsConflictsWithAllFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	im := w.implemented(recipe(1, "write", "FILE", "a.txt", "TEXT", "mine"))
	w.repo.Commit("somebody else", map[string]string{"a.txt": "1\n2\n3\n4\n5\n6\n7\ntheirs\n"})
	rb := w.rebased(im)
	if diff := cmp.Diff([]string{"a.txt"}, rb.Conflicts); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.txt"}, rb.Files); diff != "" || rb.Head != "" {
		t.Error(rb, diff)
	}
}

func TestRebaseReportsWhatVerifySays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repo.Commit("a noisy verification", map[string]string{"pfl-forge.yaml": settings +
		"worktree_setup: ['echo ready > setup.log']\n"})
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "BROKEN"))
	rb := w.rebased(im)
	want := &forge.VerifyReport{Command: "! grep -rq BROKEN --include=*.txt .", Output: "exit status 1"}
	if rb.Verify != nil {
		rb.Verify.Runs, rb.Verify.Trials = nil, nil // TestWhoseFaultAFailedVerifyIs looks at these
	}
	if diff := cmp.Diff(want, rb.Verify); diff != "" || rb.Head == "" {
		t.Error(rb, diff)
	}
}

// A goal that has changed nothing is judged by what holds on the base branch.
func TestRebaseOfNothingVerifiesTheTip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.repo.Head("main")
	w.repo.Commit("the checks fail by now", map[string]string{"pfl-forge.yaml": "verify: ['exit 7']\n"})
	rb := w.rebased(&forge.Implementation{Base: string(before), Head: string(before)})
	tip := string(w.repo.Head("main"))
	if rb.Base != tip || rb.Head != tip || rb.Verify == nil || rb.Verify.Passed || len(rb.Verify.Runs) != 1 {
		t.Fatalf("%+v, %+v", rb, rb.Verify)
	}
	if run := rb.Verify.Runs[0]; run.ExitCode != 7 || run.Tree != rb.Tree || run.Command != "exit 7" {
		t.Errorf("%+v", run)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	got := w.merges(merge(1, rb))
	want := &forge.MergeResult{Outcome: forge.MergeDone, Commit: rb.Head, Parent: rb.Base, Tree: rb.Tree, PatchID: rb.PatchID}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if w.repo.Head("main") != git.OID(rb.Head) || w.repo.Git("status", "--porcelain", "-uno") != "" {
		t.Error("main or the person's files did not follow")
	}
	if !strings.Contains(w.repo.Git("ls-files"), "new.txt") {
		t.Error("the person's index did not follow")
	}
}

func TestMergeOnAMovedTip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	tip := w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	got := w.merges(merge(1, rb))
	if got.Outcome != forge.MergeDone || got.Parent != string(tip) || got.PatchID != rb.PatchID ||
		got.Commit != string(w.repo.Head("main")) || got.Tree != w.repo.Git("rev-parse", "main^{tree}") {
		t.Errorf("got %+v", got)
	}
	if w.repo.Head("main^") != tip || w.repo.Show("main", "b.txt") != "c" || w.repo.Show("main", "new.txt") != "x" {
		t.Error("a change got lost")
	}
}

func TestMergeInConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("a.txt", "mine")
	tip := w.repo.Commit("somebody else", map[string]string{"a.txt": "1\n2\n3\n4\n5\n6\n7\ntheirs\n"})
	want := &forge.MergeResult{Outcome: forge.MergeConflict, Files: []string{"a.txt"}}
	if diff := cmp.Diff(want, w.merges(merge(1, rb))); diff != "" || w.repo.Head("main") != tip {
		t.Error(diff)
	}
}

// Part of the change is merged meanwhile: what is left is another patch.
func TestMergeOfAChangedPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	im := w.implemented(recipe(1, "commits"))
	rb := w.rebased(im)
	tip := w.repo.Commit("one of them", map[string]string{"one.txt": "one\n"})
	got := w.merges(merge(1, rb))
	if got.Outcome != forge.MergePatchChanged || got.Candidate == nil || got.Candidate.Base != string(tip) || w.repo.Head("main") != tip {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"two.txt"}, got.Candidate.Files); diff != "" || got.Candidate.Verify == nil {
		t.Errorf("%+v\n%s", got.Candidate, diff)
	}
	second := w.merges(merge(2, got.Candidate))
	if second.Outcome != forge.MergeDone || w.repo.Head("main^") != tip {
		t.Errorf("got %+v", second)
	}
}

// Somebody else made the same change meanwhile: there is nothing left to do.
func TestMergeOfWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	tip := w.repo.Commit("the same", map[string]string{"new.txt": "x\n"})
	got := w.merges(merge(1, rb))
	if got.Outcome != forge.MergeDone || got.Commit != string(tip) || w.repo.Head("main") != tip {
		t.Errorf("got %+v", got)
	}
}

// Nobody waits any more while the branch is being moved: it is moved all the same,
// and that is reported.
func TestAMoveIsNotCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	ctx, cancel := context.WithCancel(t.Context())
	w.imp.crash = func(at string) {
		if at == "kept" {
			cancel()
		}
	}
	c := merge(1, rb)
	w.want(c)
	r := w.imp.merge(ctx, c, silent)
	if out := forge.As[*forge.MergeResult](r.Output); r.Failure() != nil || out.Outcome != forge.MergeDone || w.repo.Head("main") != git.OID(rb.Head) {
		t.Errorf("got %+v, %+v", r.Failure(), out)
	}
}

// The change is fine by itself, and so is what was merged meanwhile; together they are not.
func TestMergeThatDoesNotVerifyOnTheMovedTip(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	strict := strings.Replace(settings, "verify:", "verify:\n  - test ! -e new.txt", 1)
	tip := w.repo.Commit("forbid it", map[string]string{"pfl-forge.yaml": strict})
	got := w.merges(merge(1, rb))
	if got.Outcome != forge.MergeVerifyFailed || got.Verify == nil || got.Verify.Command != "test ! -e new.txt" || got.Candidate == nil {
		t.Errorf("got %+v", got)
	}
	if w.repo.Head("main") != tip {
		t.Error("it merged")
	}
}

func TestMergeWaitsForAPersonsFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("a.txt", "mine")
	w.repo.Write("a.txt", "edited\n")
	want := &forge.MergeResult{Outcome: forge.MergeDirty, Files: []string{"a.txt"}}
	if diff := cmp.Diff(want, w.merges(merge(1, rb))); diff != "" {
		t.Error(diff)
	}
	if w.repo.Head("main") != git.OID(rb.Base) {
		t.Error("it merged")
	}
	w.repo.Git("checkout", "-q", "--", "a.txt")
	if got := w.merges(merge(2, rb)); got.Outcome != forge.MergeDone {
		t.Errorf("got %+v", got)
	}
}

func TestMergeWaitsForAPersonsMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	w.repo.Git("checkout", "-q", "-b", "side")
	w.repo.Commit("side", map[string]string{"side.txt": "s\n"})
	w.repo.Git("checkout", "-q", "main")
	w.repo.Git("merge", "-q", "--no-ff", "--no-commit", "side")
	if got := w.merges(merge(1, rb)); got.Outcome != forge.MergeDirty || len(got.Files) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestNotWantedIsNotMerged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	w.want()
	fails(t, w.imp.merge(t.Context(), merge(1, rb), silent), forge.FailKilled, "was cancelled")
	if w.repo.Head("main") != git.OID(rb.Base) || len(w.refs("/merge/")) != 0 {
		t.Error("it merged")
	}
}

// The process dies between writing the merge down and moving the branch.
func TestDeathBeforeTheBranchMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	c := merge(1, rb)
	w.want(c)
	w.crashAt("kept")
	dies(t, func() { w.imp.merge(t.Context(), c, silent) })
	if w.repo.Head("main") != git.OID(rb.Base) || len(w.refs("/merge/")) != 1 {
		t.Fatal("it did not stop there")
	}
	w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	if got := w.merges(c); got.Outcome != forge.MergeDone || w.repo.Show("main", "b.txt") != "c" || w.repo.Show("main", "new.txt") != "x" {
		t.Errorf("got %+v", got)
	}
}

// The process dies after moving the branch: whoever gets the command says what
// became of it, wanted or not, and is merged nothing twice.
func TestDeathAfterTheBranchMoved(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for _, wanted := range []bool{true, false} {
		w := newWorld(t)
		first := w.ready("new.txt", "x")
		w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
		c := merge(1, first)
		w.want(c)
		w.crashAt("moved")
		dies(t, func() { w.imp.merge(t.Context(), c, silent) })
		merged := w.repo.Head("main")
		tip := w.repo.Commit("and more", map[string]string{"b.txt": "d\n"})
		if !wanted {
			w.want()
		}
		c.Attempt.Claim = 2
		r := w.imp.merge(t.Context(), c, silent)
		want := &forge.MergeResult{
			Outcome: forge.MergeDone, Commit: string(merged), Parent: string(w.repo.Head("main~2")),
			Tree: w.repo.Git("rev-parse", "main^^{tree}"), PatchID: first.PatchID,
		}
		if diff := cmp.Diff(want, forge.As[*forge.MergeResult](r.Output)); diff != "" || r.Failure() != nil {
			t.Errorf("wanted %t: %+v\n%s", wanted, r.Failure(), diff)
		}
		if w.repo.Head("main") != tip {
			t.Error("it merged twice")
		}
	}
}

// A merge of the task that the change was made on top of is no merge of it.
func TestAnEarlierMergeBelowTheChangeDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if got := w.merges(merge(1, w.ready("new.txt", "x"))); got.Outcome != forge.MergeDone {
		t.Fatalf("got %+v", got)
	}
	again := recipe(2, "write", "FILE", "other.txt", "TEXT", "y")
	rb := w.rebased(w.implemented(again))
	if got := w.merges(merge(2, rb)); got.Outcome != forge.MergeDone || got.Commit != rb.Head || w.repo.Show("main", "other.txt") != "y" {
		t.Errorf("got %+v", got)
	}
}

func TestMergeNeedsCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := merge(1, &forge.Rebase{Base: "main", Head: "HEAD"})
	w.want(c)
	fails(t, w.imp.merge(t.Context(), c, silent), forge.FailInvalidOutput, "base")
	c.Input = &forge.MergeInput{}
	fails(t, w.imp.merge(t.Context(), c, silent), forge.FailInvalidOutput, "what to be merged")
}

// guarded is a configuration whose check is a script of the repository.
const guarded = "verify: ['bash ci/check.sh']\nrecipes: {write: {params: [{name: FILE}, {name: TEXT}], run: 'printf \"%s\\n\" \"$TEXT\" > \"$FILE\"'}}\n"

// TestWhatVerifiesIsNotChangedByWhatIsVerified has a change that takes the sting out of the
// check that it does not pass.
func TestWhatVerifiesIsNotChangedByWhatIsVerified(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": guarded, "ci/check.sh": "! test -e BROKEN || exit 1"})
	w := worldOn(t, r, repotest.Local(t, r.Dir), bustest.Start(t))
	check := w.implemented(recipe(1, "write", "FILE", "ci/check.sh", "TEXT", "true"))
	if diff := cmp.Diff([]string{"ci/check.sh (verify runs it)"}, w.rebased(check).Guarded); diff != "" {
		t.Error(diff)
	}
	r.Git("checkout", "-q", check.Head)
	both := r.Commit("and breaks it", map[string]string{"BROKEN": "x"})
	r.Git("checkout", "-q", "main")
	rb := w.rebased(&forge.Implementation{Base: check.Base, Head: string(both)})
	want := []string{"ci/check.sh (verify runs it)", `with ci/check.sh as it was, "bash ci/check.sh" fails`}
	if diff := cmp.Diff(want, rb.Guarded); diff != "" || !rb.Verify.Passed {
		t.Error(rb.Verify, diff)
	}
	r.Git("checkout", "-q", check.Head)
	r.Git("rm", "-q", "-r", "ci")
	link := r.Commit("a link in its place", map[string]string{"ci": "x"})
	r.Git("checkout", "-q", "main")
	if rb = w.rebased(&forge.Implementation{Base: check.Base, Head: string(link)}); rb.Verify.Passed || len(rb.Guarded) != 2 {
		t.Errorf("got %q, %+v", rb.Guarded, rb.Verify)
	}
}

// TestMergeOnATipThatGuardsMore has the base branch give a file more weight after the change of
// it was reviewed.
func TestMergeOnATipThatGuardsMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	w.repo.Commit("instructions", map[string]string{"CLAUDE.md": "See @new.txt"})
	got := w.merges(merge(1, rb))
	if got.Outcome != forge.MergePatchChanged || got.Candidate == nil || got.Candidate.PatchID != rb.PatchID {
		t.Fatalf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"new.txt (CLAUDE.md imports it)"}, got.Candidate.Guarded); diff != "" {
		t.Error(diff)
	}
	if got = w.merges(merge(2, got.Candidate)); got.Outcome != forge.MergeDone { // approved, or reviewed and approved
		t.Errorf("got %+v", got)
	}
}

// A base branch that moves while the change is verified says nothing about the
// change, however often: it is tried again on the tip that is found then. The
// one who says so has to have seen it elsewhere.
func TestMergeThatIsOvertaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rb := w.ready("new.txt", "x")
	for n := range 7 {
		var tip git.OID
		w.imp.crash = func(at string) {
			if at == "kept" {
				tip = w.repo.Commit("somebody is quicker", map[string]string{"other.txt": strings.Repeat("y\n", n+1)})
			}
		}
		c := merge(1, rb)
		c.Attempt.Claim = n + 1
		if got := w.merges(c); got.Outcome != forge.MergeOvertaken || got.Commit != "" || w.repo.Head("main") != tip {
			t.Fatalf("got %+v", got)
		}
	}
	w.imp.crash = func(string) {}
	c := merge(1, rb)
	c.Attempt.Claim = 8
	if got := w.merges(c); got.Outcome != forge.MergeDone || w.repo.Head("main") != git.OID(got.Commit) || w.repo.Head("main^") != git.OID(got.Parent) {
		t.Errorf("got %+v", got)
	}
}
