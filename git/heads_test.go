package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// newest is an attempt whose head others are compared with.
func newest(task string) store.Attempt {
	a := attempt(task)
	a.Newest = true
	return a
}

func wantHeads(t *testing.T, s *store.Store, want ...objects.TaskHead) {
	t.Helper()
	got, err := s.TaskHeads(t.Context())
	if diff := cmp.Diff(append([]objects.TaskHead{}, want...), got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestTaskHeads(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s := r.store()
	wantHeads(t, s)
	one, two := r.commit("one", map[string]string{"a": "b\n"}), r.commit("two", map[string]string{"a": "c\n"})
	keep := func(a store.Attempt, at git.OID) {
		t.Helper()
		if _, err := s.Keep(ctx, a, at); err != nil {
			t.Fatal(err)
		}
	}
	keep(newest("x-001"), one)
	keep(newest("y-001"), one)
	keep(attempt("z-001"), one) // an attempt that was cut off
	wantHeads(t, s, objects.TaskHead{Task: "x-001", Commit: one}, objects.TaskHead{Task: "y-001", Commit: one})
	keep(newest("x-001"), two)
	keep(newest("x-001"), two)
	wantHeads(t, s, objects.TaskHead{Task: "x-001", Commit: two}, objects.TaskHead{Task: "y-001", Commit: one})
	if r.head("refs/forge/_heads/x-001") != two {
		t.Error("git does not see it")
	}

	r.git("gc", "-q") // a person's
	wantHeads(t, s, objects.TaskHead{Task: "x-001", Commit: two}, objects.TaskHead{Task: "y-001", Commit: one})
	keep(newest("x-001"), one) // of a packed commit
	three := r.commit("three", map[string]string{"a": "d\n"})
	keep(newest("y-001"), three)
	wantHeads(t, s, objects.TaskHead{Task: "x-001", Commit: one}, objects.TaskHead{Task: "y-001", Commit: three})
	for range 2 {
		if err := s.Forget(ctx, nil, "x-001", "gone-001"); err != nil {
			t.Fatal(err)
		}
		wantHeads(t, s, objects.TaskHead{Task: "y-001", Commit: three})
	}
	keep(newest("x-001"), three)
	if err := s.Forget(ctx, nil, "x-001", "y-001"); err != nil {
		t.Fatal(err)
	}
	wantHeads(t, s)
	keep(store.Attempt{Intent: "fix", Task: "fix-001", Number: 1, Newest: true}, one)
	keep(store.Attempt{Intent: "fix-it", Task: "fix-it-001", Number: 1, Newest: true}, one)
	must(t, s.Sweep(ctx, "fix"))
	wantHeads(t, s, objects.TaskHead{Task: "fix-it-001", Commit: one})
	if s.Forget(ctx, nil, "../x") == nil {
		t.Error("a path is taken for a task")
	}
	r.git("fsck", "--strict")
}

// What one replica keeps, the other one knows when it has fetched, and has what it needs.
func TestTaskHeadsOfOthers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
	one := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "one.git"))
	two := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "two.git"))
	c, agent := prepare(t, newPool(t, one), "t", bare.head("main"))
	agent.write("a", "b\n")
	agent.git("commit", "-qam", "work")
	got, err := c.Collect(ctx, newest("t"))
	if err != nil {
		t.Fatal(err)
	}
	wantHeads(t, two)
	for _, s := range []*store.Store{two, one} {
		must(t, s.Fetch(ctx))
		wantHeads(t, s, objects.TaskHead{Task: "t", Commit: got.Head})
		if !s.Has(ctx, got.Head) {
			t.Error("its commit is not there")
		}
	}
	third := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "third.git"))
	wantHeads(t, third, objects.TaskHead{Task: "t", Commit: got.Head})
	for _, s := range []*store.Store{two, one} {
		must(t, s.Forget(ctx, nil, "t"))
		wantHeads(t, s)
	}
	must(t, third.Fetch(ctx))
	wantHeads(t, third)
}

// TestForgetBesideAnother has a head go at the origin while it is being deleted
// there, as when two replicas have kept it.
func TestForgetBesideAnother(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
	s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "clone.git"))
	c, agent := prepare(t, newPool(t, s), "t", bare.head("main"))
	agent.write("a", "b\n")
	agent.git("commit", "-qam", "work")
	if _, err := c.Collect(ctx, newest("t")); err != nil {
		t.Fatal(err)
	}
	hook := "#!/bin/sh\n[ ! -e once ] || exit 0\n: > once\nrm refs/forge/_heads/t\n"
	must(t, os.MkdirAll(filepath.Join(bare.dir, "hooks"), 0o755))
	must(t, os.WriteFile(filepath.Join(bare.dir, "hooks", "pre-receive"), []byte(hook), 0o755))
	must(t, s.Forget(ctx, nil, "t"))
	wantHeads(t, s)
	if _, err := os.Stat(filepath.Join(bare.dir, "once")); err != nil {
		t.Fatal("the head did not go meanwhile:", err)
	}
}
