package implementer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/proof"
)

// signedWorld is a world with keys, and a function that makes the statements of the others.
func signedWorld(t *testing.T) (*world, proof.Signers, func(*forge.Rebase) []forge.Envelope) {
	t.Helper()
	w := newWorld(t)
	keys := map[string]*proof.Key{}
	var signers proof.Signers
	for _, role := range proof.Roles() {
		k, err := proof.Derive([]byte("a seed for tests that is long enough: "+role), role)
		if err != nil {
			t.Fatal(err)
		}
		keys[role], signers = k, append(signers, k.Signer())
	}
	w.imp.key = func() (*proof.Key, error) { return keys["implementer"], nil }
	others := func(rb *forge.Rebase) []forge.Envelope {
		about, of := proof.Change{Tree: rb.Tree, Parent: rb.Base, Patch: rb.PatchID}, proof.Task{Project: "shop", Intent: "fix", Task: "fix-001"}
		list := []forge.Envelope{rb.Statement}
		for role, p := range map[string]proof.Predicate{
			"reviewer": &proof.Review{Of: of, Step: "review", Verdict: proof.VerdictApproved, Replica: "v1"},
			"runner":   &proof.Plan{Of: of, Run: 1, Plan: "0123456789ab", Requirement: "x"},
		} {
			e, err := keys[role].State(about, p)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, e)
		}
		return list
	}
	return w, signers, others
}

// proven is the command to merge what was rebased, with its statements.
func proven(rb *forge.Rebase, statements []forge.Envelope) forge.Command {
	c := merge(1, rb)
	c.Merge().Change.Statements = statements
	return c
}

// check fails the test unless a commit has all of its proofs, by this package
// and by git. It returns what they say.
func (w *world) check(commit git.OID, signers proof.Signers) proof.Report {
	w.t.Helper()
	s := w.repository().Store
	text, err := s.Proofs(w.t.Context(), commit)
	if err != nil {
		w.t.Fatal(err)
	}
	r := s.NewReader(w.t.Context())
	defer r.Close()
	object, err := r.RawCommit(commit)
	if err != nil {
		w.t.Fatal(err)
	}
	report := proof.Check(object, text, signers, func(c proof.Change) (string, error) {
		return s.PatchID(w.t.Context(), git.OID(c.Parent), commit)
	})
	if !report.OK() {
		w.t.Errorf("%s: %q", commit, report.Problems)
	}
	file := filepath.Join(w.t.TempDir(), "allowed_signers")
	if err := os.WriteFile(file, []byte(signers.String()), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if said := w.repo.Git("-c", "gpg.ssh.allowedSignersFile="+file, "verify-commit", string(commit)); !strings.Contains(said, "signature for implementer") {
		w.t.Errorf("git says %q", said)
	}
	return report
}

// What is merged is signed, by a key that git knows as well, and has its statements beside it.
func TestMergeIsSigned(t *testing.T) {
	t.Parallel()
	w, signers, others := signedWorld(t)
	rb := w.ready("new.txt", "x")
	c := proven(rb, others(rb))
	c.Merge().Change.Approver = "ada" // which makes another commit of it
	got := w.merges(c)
	if got.Outcome != forge.MergeDone || got.Commit == rb.Head || got.Tree != rb.Tree || w.repo.Head("main") != git.OID(got.Commit) {
		t.Fatalf("got %+v", got)
	}
	if !strings.Contains(w.repo.Git("log", "-1", "--format=%B"), "Forge-Approver: ada") {
		t.Error("the approver is not in the message")
	}
	w.check(git.OID(got.Commit), signers)
	w.repo.Git("fsck", "--strict")
}

// On a moved tip the change is verified once more, and that is what is stated;
// the review holds for the same patch.
func TestMergeOnAMovedTipIsStatedAnew(t *testing.T) {
	t.Parallel()
	w, signers, others := signedWorld(t)
	rb := w.ready("new.txt", "x")
	w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
	if got := w.merges(proven(rb, others(rb))); got.Outcome != forge.MergeDone {
		t.Fatalf("got %+v", got)
	}
	w.check(w.repo.Head("main"), signers)
}

// Whenever the process dies, what is on the branch has its proofs, and the next
// process merges the very same commit.
func TestDeathLeavesNoMergeWithoutProofs(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"kept", "moved"} {
		w, signers, others := signedWorld(t)
		rb := w.ready("new.txt", "x")
		c := proven(rb, others(rb))
		w.want(c)
		w.crashAt(at)
		dies(t, func() { w.imp.merge(t.Context(), c, silent) })
		proofs := w.refs("_proofs")
		if len(proofs) != 1 {
			t.Fatalf("%s: kept %q", at, proofs)
		}
		if head := w.repo.Head("main"); head != git.OID(rb.Base) {
			w.check(head, signers)
		}
		w.imp.crash = func(string) {}
		if got := w.merges(c); got.Outcome != forge.MergeDone || store.ProofsRef(git.OID(got.Commit)) != proofs[0] {
			t.Errorf("%s: got %+v beside %q", at, got, proofs)
		}
		w.check(w.repo.Head("main"), signers)
	}
}

// Cleaning an intent leaves what proves its commits.
func TestCleaningKeepsProofs(t *testing.T) {
	t.Parallel()
	w, signers, others := signedWorld(t)
	rb := w.ready("new.txt", "x")
	w.merges(proven(rb, others(rb)))
	if err := w.repository().Store.Sweep(t.Context(), "fix"); err != nil || len(w.refs("fix")) != 0 {
		t.Fatal(err, w.refs(""))
	}
	w.check(w.repo.Head("main"), signers)
}

// At an origin the proofs are there before the branch is, and no clone fetches them by itself.
func TestProofsAtAnOrigin(t *testing.T) {
	t.Parallel()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	origin := r.Origin()
	signed, signers, others := signedWorld(t)
	w := worldOn(t, gittest.At(t, origin), repotest.Clone(t, origin), bustest.Start(t))
	w.imp.key = signed.imp.key
	rb := w.ready("new.txt", "x")
	c := proven(rb, others(rb))
	w.want(c)
	w.crashAt("kept")
	dies(t, func() { w.imp.merge(t.Context(), c, silent) })
	if len(w.refs("_proofs")) != 1 || w.repo.Head("main") != git.OID(rb.Base) {
		t.Errorf("the origin has %q", w.refs(""))
	}
	w.imp.crash = func(string) {}
	if got := w.merges(c); got.Outcome != forge.MergeDone {
		t.Fatalf("got %+v", got)
	}
	w.check(w.repo.Head("main"), signers)
	other := repotest.Clone(t, origin)
	clone, err := other.Get(repotest.Project)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := clone.Store.Git(t.Context(), "for-each-ref", store.ProofsPrefix); err != nil || len(out) > 0 {
		t.Errorf("a clone fetched %q, %v", out, err)
	}
}

// A key that cannot be read merges nothing, and says so.
func TestNothingIsMergedWithoutTheKey(t *testing.T) {
	t.Parallel()
	w, _, others := signedWorld(t)
	rb := w.ready("new.txt", "x")
	w.imp.key = func() (*proof.Key, error) { return nil, os.ErrPermission }
	c := proven(rb, others(rb))
	w.want(c)
	r := w.imp.merge(t.Context(), c, silent)
	if r.Failure() == nil || !strings.Contains(r.Failure().Message, "nothing can be signed") || w.repo.Head("main") != git.OID(rb.Base) {
		t.Errorf("got %+v", r.Output)
	}
}

// A change that somebody else's commit has already leaves the proofs of that commit alone.
func TestProofsOfOthersStay(t *testing.T) {
	t.Parallel()
	w, signers, others := signedWorld(t)
	first := w.ready("new.txt", "x")
	second := command(forge.StepRebase, 1)
	second.Attempt.Task, second.Task.Base, second.Task.Head = "fix-002", first.Base, first.Head
	again := forge.As[*forge.Rebase](w.imp.rebase(t.Context(), second, silent).Output)
	w.merges(proven(first, others(first)))
	tip := w.repo.Head("main")
	c := proven(again, others(again))
	c.Attempt.Task, c.Merge().Change.Task = "fix-002", "fix-002"
	if got := w.merges(c); got.Outcome != forge.MergeDone || w.repo.Head("main") != tip {
		t.Fatalf("got %+v", got)
	}
	if proofs := w.refs("_proofs"); len(proofs) != 1 {
		t.Errorf("kept %q", proofs)
	}
	w.check(tip, signers)
}
