package implementer

import (
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// once is the configuration by which changes are verified on what lands alone.
const once = "merge_queue: {verify_before_review: false}\n"

// rebasesLater rebases a change whose verify commands may be left to its merge.
func (w *world) rebasesLater(im *forge.Implementation) *forge.Rebase {
	w.t.Helper()
	return w.rebases(im, func(c *forge.Command) { c.Input = &forge.RebaseInput{VerifyInMerge: true} })
}

// unverified is the command to merge what was not verified before its review.
func unverified(rb *forge.Rebase) forge.Command {
	c := merge(1, rb)
	c.Merge().Change.Unverified, c.Merge().Change.MadeOn = rb.Unverified, rb.MadeOn
	return c
}

// onceCounted is counted with that configuration.
func onceCounted(t *testing.T, line string) (*world, func() int) {
	t.Helper()
	return counted(t, line, nil, once)
}

// A change is verified once: on what lands, whether or not the base branch has
// moved since its review.
func TestVerifiedOnce(t *testing.T) {
	t.Parallel()
	for name, moves := range map[string]bool{"where it was": false, "moved": true} {
		t.Run(name, func(t *testing.T) {
			w, runs := onceCounted(t, "true")
			rb := w.rebasesLater(w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x")))
			if !rb.Unverified || rb.Verify != nil || runs() != 0 {
				t.Fatalf("before its review: %+v after %d runs", rb, runs())
			}
			if moves {
				w.repo.Commit("somebody else", map[string]string{"other.txt": "y\n"})
			}
			got := w.merges(unverified(rb))
			if got.Outcome != forge.MergeDone || got.Verify == nil || !got.Verify.Passed || runs() != 1 || w.repo.Head("main") != git.OID(got.Commit) {
				t.Errorf("got %+v after %d runs", got, runs())
			}
			if !moves && (got.Commit != rb.Head || got.Tree != rb.Tree) {
				t.Errorf("merged %s and not what was reviewed, %s", got.Commit, rb.Head)
			}
		})
	}
}

// What fails lands nowhere, also where the base branch is as it was for the
// review. Whose fault that is shows as ever.
func TestUnverifiedDoesNotLand(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]verdict.Fault{
		"! test -e new.txt":                        verdict.FaultOfChange,
		"test $((n % 2)) = 1 || test ! -e new.txt": verdict.NoFault,
		"test $((n % 2)) = 0 || test ! -e new.txt": verdict.FaultOfChange, // the base never failed
		"test $((n % 5)) != 1":                     verdict.FaultOfCheck,  // it failed once, and then passed three times
		"test $((n % 3)) != 1":                     verdict.FaultOfCheck,
		"false":                                    verdict.FaultOfBase,
	} {
		w, _ := onceCounted(t, line)
		rb := w.rebasesLater(w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x")))
		got := w.merges(unverified(rb))
		lands := want == verdict.NoFault || want == verdict.FaultOfCheck
		if moved := w.repo.Head("main") != git.OID(rb.Base); moved != lands || (got.Outcome == forge.MergeDone) != lands || got.Verify == nil {
			t.Fatalf("%s: %+v", line, got)
		}
		if fault := verdict.Blame(got.Verify, rb.Tree); fault != want {
			t.Errorf("%s: blamed is %q: %s", line, fault, trialsOf(got.Verify))
		}
	}
}

// What a trial found of a change that nobody had verified counts as ever: only for its tree.
func TestUnverifiedTakesWhatATrialFound(t *testing.T) {
	t.Parallel()
	w, runs := onceCounted(t, "true")
	ready := func(id forge.IntentID, file string) forge.Command {
		c := w.readyAs(id, file, "1")
		rb := *c.Merge().Change
		rb.Unverified = true
		in := c.Merge()
		in.Change = &rb
		c.Input = &in
		return c
	}
	a, b := ready("one", "one.txt"), ready("two", "two.txt")
	w.forgets()
	before := runs()
	tried := w.tries(b, a)
	w.merges(a)
	if got := w.merges(found(b, tried)); got.Outcome != forge.MergeDone || got.Verify == nil || runs() != before+2 {
		t.Errorf("got %+v after %d runs", got, runs()-before)
	}
}

// Verifying is left to the merge only where the project says so, the rules do,
// and nothing else depends on it.
func TestWhatIsNotLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		change   func(*forge.Command)
		file     string
	}{
		"the project does not say so": {"", func(*forge.Command) {}, "new.txt"},
		"the rules do not":            {once, func(c *forge.Command) { c.Input = &forge.RebaseInput{} }, "new.txt"},
		"checks of criteria": {once, func(c *forge.Command) {
			c.Task.Checks = []forge.Check{{Command: "true", Criterion: 1}}
		}, "new.txt"},
		"a fix has to be proved":  {once, func(c *forge.Command) { c.Intent.Type, c.Intent.Recipe = "fix", "" }, "new_test.go"},
		"a file that verify runs": {once, func(*forge.Command) {}, "check.sh"},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := counted(t, "sh check.sh", map[string]string{"check.sh": "true\n"}, c.settings)
			rb := w.rebases(w.implemented(recipe(1, "write", "FILE", c.file, "TEXT", "true")), func(cmd *forge.Command) {
				cmd.Input = &forge.RebaseInput{VerifyInMerge: true}
				c.change(cmd)
			})
			if rb.Unverified || rb.Verify == nil || runs() == 0 {
				t.Errorf("%+v after %d runs", rb, runs())
			}
		})
	}
}

// Nothing states of a change that it was verified before it was.
func TestUnverifiedIsNotStated(t *testing.T) {
	t.Parallel()
	w, signers, others := signedWorld(t)
	w.repo.Commit("verify once", map[string]string{"pfl-forge.yaml": settings + once})
	rb := w.rebasesLater(w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x")))
	if !rb.Unverified || rb.Statement != "" {
		t.Fatalf("states %q of %+v", rb.Statement, rb)
	}
	c := proven(rb, others(rb)[1:])
	c.Merge().Change.Unverified = true
	if got := w.merges(c); got.Outcome != forge.MergeDone {
		t.Fatalf("got %+v", got)
	}
	w.check(w.repo.Head("main"), signers)
}

// A replica that dies while it merges such a change leaves nothing on the base
// branch that was not verified.
func TestDeathWithAnUnverifiedChange(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"kept", "moved"} {
		w, runs := onceCounted(t, "true")
		c := unverified(w.rebasesLater(w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))))
		w.want(c)
		w.crashAt(at)
		dies(t, func() { w.imp.merge(t.Context(), c, silent) })
		w.imp.crash = func(string) {}
		if got := w.merges(c); got.Outcome != forge.MergeDone || runs() != 1 || strings.Count(w.repo.Git("log", "--format=%s", "main"), "\n") != 1 {
			t.Errorf("%s: %+v after %d runs", at, got, runs())
		}
	}
}

// A change that fails only with what was merged after it was made is a semantic
// conflict, as in a rebase that verifies: where it was made is known though
// nothing was verified on the tip that it was put on.
func TestUnverifiedTogetherTheyFail(t *testing.T) {
	t.Parallel()
	w, _ := onceCounted(t, "! test -e new.txt -a -e other.txt")
	im := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	w.repo.Commit("merged meanwhile", map[string]string{"other.txt": "y\n"})
	rb := w.rebasesLater(im)
	if !rb.Unverified || rb.MadeOn != im.Base {
		t.Fatalf("made on %q, want %q: %+v", rb.MadeOn, im.Base, rb)
	}
	w.repo.Commit("merged later", map[string]string{"third.txt": "z\n"}) // it lands on another tip again
	got := w.merges(unverified(rb))
	fault := verdict.Blame(got.Verify, got.Candidate.Tree)
	if got.Outcome != forge.MergeVerifyFailed || trialsOf(got.Verify) != "change- change- base+ alone+" || fault != verdict.FaultOfBoth {
		t.Fatalf("%+v, trials %s", got, trialsOf(got.Verify))
	}
	if !slices.Equal(got.Candidate.Landed, []string{"other.txt", "third.txt"}) {
		t.Errorf("merged meanwhile: %q", got.Candidate.Landed)
	}
}
