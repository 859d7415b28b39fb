package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// TestPropose pushes what is to be looked at by two replicas in turn. Neither
// knows what the other has pushed but from the origin.
func TestPropose(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	one := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "one.git"))
	first := person.commit("first", map[string]string{"a": "1\n"})
	second := person.commit("second", map[string]string{"a": "2\n"})
	theirs := person.commit("theirs", map[string]string{"a": "3\n"})
	person.git("push", "-q", "origin", "main")
	two := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "two.git"))
	if err := one.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	propose := func(s *store.Store, commit git.OID, want error) {
		t.Helper()
		before, there := bare.try("rev-parse", "-q", "--verify", "refs/heads/bot/t-001")
		err := s.Propose(ctx, "t-001", "bot/t-001", commit, "")
		after, _ := bare.try("rev-parse", "-q", "--verify", "refs/heads/bot/t-001")
		if !errors.Is(err, want) || want == nil && git.OID(after) != commit || want != nil && (there != nil || after != before) {
			t.Fatalf("%v, it is at %s", err, after)
		}
	}
	propose(one, first, nil)
	propose(two, first, nil)  // again, by another one
	propose(two, second, nil) // ours is replaced
	propose(one, first, nil)  // and back, as after a change that was made again on another base

	bare.git("update-ref", "refs/heads/bot/t-001", string(theirs))
	propose(one, second, store.ErrEdited)
	propose(two, first, store.ErrEdited) // not even by what was there before
	propose(two, theirs, nil)            // theirs was taken over
	propose(two, second, nil)            // and is ours to replace since then

	bare.git("update-ref", "-d", "refs/heads/bot/t-001")
	propose(one, first, nil)

	// Another task's memory says nothing of this branch.
	if err := one.Propose(ctx, "u-001", "bot/t-001", second, ""); !errors.Is(err, store.ErrEdited) {
		t.Errorf("another task takes the branch: %v", err)
	}
	// A branch of the same last name is another one.
	if err := one.Propose(ctx, "v-001", "t-001", second, ""); err != nil || bare.head("t-001") != second || bare.head("bot/t-001") != first {
		t.Errorf("%v", err)
	}
}

// TestProposeOver takes the place of the one commit that it may, and only as
// long as the branch is there.
func TestProposeOver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	first := person.commit("first", map[string]string{"a": "1\n"})
	theirs := person.commit("theirs", map[string]string{"a": "2\n"})
	next := person.commit("next", map[string]string{"a": "3\n"})
	person.git("push", "-q", "origin", "main")
	s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "one.git"))
	if err := s.Propose(ctx, "t-001", "bot/t", first, ""); err != nil {
		t.Fatal(err)
	}
	bare.git("update-ref", "refs/heads/bot/t", string(next))
	err := s.Propose(ctx, "t-001", "bot/t", first, theirs)
	if e, ok := errors.AsType[*store.EditedError](err); !ok || e.At != next || !errors.Is(err, store.ErrEdited) {
		t.Fatalf("over another one: %v", err)
	}
	bare.git("update-ref", "refs/heads/bot/t", string(theirs))
	attempt := store.Attempt{Intent: "t", Task: "t-001", Number: 2}
	if at, err := store.FetchHead(ctx, s, attempt, "bot/t"); err != nil || at != theirs {
		t.Fatalf("it is at %s, %v", at, err)
	}
	if _, err := store.FetchHead(ctx, s, attempt, "bot/u"); !errors.Is(err, git.ErrNoBranch) {
		t.Errorf("of no branch: %v", err)
	}
	if err := s.Propose(ctx, "t-001", "bot/t", next, theirs); err != nil || bare.head("bot/t") != next || bare.head("refs/forge/_proposed/t-001") != next {
		t.Errorf("%v, it is at %s", err, bare.head("bot/t"))
	}
}

// TestProposeBesideAPerson has a person push between our look and our push: the
// hook of the origin does it for them.
func TestProposeBesideAPerson(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	first := person.commit("first", map[string]string{"a": "1\n"})
	theirs := person.commit("theirs", map[string]string{"a": "2\n"})
	second := person.commit("second", map[string]string{"a": "3\n"})
	person.git("push", "-q", "origin", "main")
	s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "one.git"))
	if err := s.Propose(ctx, "t-001", "bot/t", first, ""); err != nil {
		t.Fatal(err)
	}
	hook := filepath.Join(bare.dir, "hooks", "pre-receive")
	script := "#!/bin/sh\nunset GIT_QUARANTINE_PATH\ngit update-ref refs/heads/bot/t " + string(theirs) + "\n"
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Propose(ctx, "t-001", "bot/t", second, ""); !errors.Is(err, store.ErrEdited) || bare.head("bot/t") != theirs {
		t.Errorf("%v, it is at %s", err, bare.head("bot/t"))
	}
	if got := bare.head("refs/forge/_proposed/t-001"); got != first {
		t.Errorf("what was pushed last is %s, although nothing was", got)
	}
}

// TestProposeRefuses what is no name, no branch and no commit, and where there is no origin.
func TestProposeRefuses(t *testing.T) {
	t.Parallel()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "one.git"))
	head := person.head("main")
	for _, bad := range []struct {
		task   git.Name
		branch git.Branch
		commit git.OID
	}{{"../t", "b", head}, {"t", "-b", head}, {"t", "a..b", head}, {"t", "b", "main"}} {
		if err := s.Propose(t.Context(), bad.task, bad.branch, bad.commit, ""); err == nil {
			t.Errorf("%+v was pushed", bad)
		}
	}
	if refs := bare.git("for-each-ref", "--format=%(refname)"); refs != "refs/heads/main" {
		t.Errorf("there is %s", refs)
	}
}
