package reviewer_test

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/services/reviewer"
)

// A verdict comes with a statement about exactly the tree and the parent that were
// reviewed, whichever the verdict is.
func TestVerdictsAreStated(t *testing.T) {
	key, err := proof.Derive([]byte("a seed for tests that is long enough"), "reviewer")
	if err != nil {
		t.Fatal(err)
	}
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	r.Git("checkout", "-q", "-b", "change")
	r.Commit("a change", map[string]string{"new.txt": "new\n"})
	r.Git("checkout", "-q", "main")
	set := repotest.Local(t, r.Dir)
	rv := reviewer.New(set, "v1", func() (*proof.Key, error) { return key, nil })
	repo, err := set.Get(repotest.Project)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := repo.Store.PatchID(t.Context(), r.Head("main"), r.Head("change"))
	if err != nil {
		t.Fatal(err)
	}
	want := proof.Change{Tree: r.Git("rev-parse", "change^{tree}"), Parent: string(r.Head("main")), Patch: patch}
	for recipe, verdict := range map[string]string{"unchecked": proof.VerdictApproved, "checked": proof.VerdictRejected} {
		got := rv.Handlers()[0].Do(t.Context(), command(r, recipe, ""), func(forge.Progress) {})
		if got.Failure() != nil {
			t.Fatal(got.Failure())
		}
		s, err := proof.Unseal(forge.As[*forge.Review](got.Output).Statement)
		if err != nil {
			t.Fatal(err)
		}
		about, p, err := s.Statement()
		if err != nil || about != want {
			t.Errorf("%s: it is about %+v, want %+v, %v", recipe, about, want, err)
		}
		said, ok := p.(*proof.Review)
		if !ok || said.Verdict != verdict || said.Of != (proof.Task{Project: "shop", Intent: "fix", Task: "fix-001"}) || said.Replica != "v1" {
			t.Errorf("%s: got %+v", recipe, p)
		}
	}
}
