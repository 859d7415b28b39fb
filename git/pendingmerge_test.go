package git_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
)

func TestMerges(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	first := r.head("main")
	second := r.commit("second", map[string]string{"a": "b\n"})
	r.git("clone", "-q", "--bare", r.dir, r.dir+".git")
	clone, err := store.OpenOrigin(t.Context(), store.OriginConfig{URL: r.dir + ".git", Dir: t.TempDir() + "/clone"})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*store.Store{"local": r.store(), "clone": clone} {
		t.Run(name, func(t *testing.T) {
			merge := func(intent, task git.Name, n int) store.PendingMerge {
				return store.PendingMerge{Intent: intent, Task: task, Number: n, Parent: first, Commit: second}
			}
			one, two, other := merge("fix", "fix-001", 1), merge("fix", "fix-001", 2), merge("other", "other-001", 1)
			for _, l := range []store.PendingMerge{one, two, two, other} {
				if err := s.KeepPendingMerge(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Keep(t.Context(), store.Attempt{Intent: "fix", Task: "fix-001", Number: 1}, second); err != nil {
				t.Fatal(err)
			}
			want := func(intent git.Name, want ...store.PendingMerge) {
				t.Helper()
				got, err := s.PendingMerges(t.Context(), intent)
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("%v\n%s", err, diff)
				}
			}
			want("", one, two, other)
			want("fix", one, two)
			if err := s.Forget(t.Context(), []store.PendingMerge{one, other}); err != nil {
				t.Fatal(err)
			}
			if err := s.Forget(t.Context(), []store.PendingMerge{one, two}); err != nil {
				t.Errorf("deleting once more: %v", err)
			}
			want("")
			if kept, err := s.List(t.Context(), "fix"); len(kept) != 1 || err != nil {
				t.Errorf("what was kept is gone: %v, %v", kept, err)
			}
			if err := s.Forget(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMergesAreChecked(t *testing.T) {
	t.Parallel()
	s := newRepo(t, map[string]string{"a": "a\n"}).store()
	for _, l := range []store.PendingMerge{
		{Intent: "fix", Task: "fix-001", Number: 1, Parent: "HEAD", Commit: "HEAD"},
		{Intent: "../x", Task: "fix-001", Number: 1},
		{Intent: "fix", Task: "fix-001"},
	} {
		if s.KeepPendingMerge(t.Context(), l) == nil || s.Forget(t.Context(), []store.PendingMerge{l}) == nil {
			t.Errorf("%+v is taken", l)
		}
	}
	if _, err := s.PendingMerges(t.Context(), "a*"); err == nil {
		t.Error("a pattern is taken for an intent")
	}
}

func TestDefaultBranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	r.git("checkout", "-q", "-b", "trunk")
	if got, err := r.store().DefaultBranch(t.Context()); got != "trunk" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	clone, err := store.OpenOrigin(t.Context(), store.OriginConfig{URL: r.dir, Dir: t.TempDir() + "/clone"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := clone.DefaultBranch(t.Context()); got != "trunk" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	r.git("checkout", "-q", "--detach")
	if _, err := r.store().DefaultBranch(t.Context()); !errors.Is(err, git.ErrDetached) {
		t.Error(err)
	}
	if _, err := clone.DefaultBranch(t.Context()); !errors.Is(err, git.ErrNoBranch) {
		t.Error(err)
	}
}

func TestRecoverAndRetire(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	p := newPool(t, r.store())
	if _, err := p.Recover("fix-001"); !errors.Is(err, git.ErrMissing) {
		t.Errorf("got %v", err)
	}
	_, agent := prepare(t, p, "fix-001", r.head("main"))
	lost := agent.commit("not collected", map[string]string{"a": "b\n"})
	if _, err := p.Reopen("fix-001", r.head("main")); !errors.Is(err, git.ErrMissing) {
		t.Errorf("got %v", err)
	}
	c, err := p.Recover("fix-001")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Collect(t.Context(), attempt("fix-001")); got.Head != lost || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for range 2 {
		if err := p.Retire("fix-001"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Recover("fix-001"); !errors.Is(err, git.ErrMissing) {
		t.Errorf("got %v", err)
	}
	if err := p.Retire("../x"); err == nil {
		t.Error("a path is taken for a name")
	}
}
