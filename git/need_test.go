package git_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// A step's fetch brings the branch, and of its task the head and the merges;
// what the origin does not have any more is not there either.
func TestFetchFor(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	one := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "one.git"))
	two := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "two.git"))
	base := bare.head("main")
	next := person.commit("next", map[string]string{"a": "b\n"})
	person.git("push", "-q", "origin", "main")
	must(t, one.Fetch(ctx))
	merge := func(intent, task git.Name) store.PendingMerge {
		return store.PendingMerge{Intent: intent, Task: task, Number: 1, Parent: base, Commit: next}
	}
	mine, other := merge("fix", "fix-001"), merge("fix", "fix-002")
	for _, l := range []store.PendingMerge{mine, other} {
		must(t, one.KeepPendingMerge(ctx, l))
		if _, err := one.Keep(ctx, store.Attempt{Intent: l.Intent, Task: l.Task, Number: 1, Newest: true}, next); err != nil {
			t.Fatal(err)
		}
	}
	head := func(task git.Name) objects.TaskHead { return objects.TaskHead{Task: task, Commit: next} }
	fetch := func(n store.Need) {
		t.Helper()
		n.Branch, n.Intent, n.Task = "main", "fix", "fix-001"
		if err := two.FetchFor(ctx, n); err != nil {
			t.Fatal(err)
		}
		if got, err := two.Head(ctx, "main"); got != bare.head("main") || err != nil {
			t.Errorf("main is at %s, %v", got, err)
		}
	}
	merges := func(task git.Name, want ...store.PendingMerge) {
		t.Helper()
		got, err := two.MergesOf(ctx, "fix", task)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	fetch(store.Need{})
	merges("fix-001", mine)
	merges("fix-002")
	wantHeads(t, two, head("fix-001"))
	fetch(store.Need{Heads: true})
	wantHeads(t, two, head("fix-001"), head("fix-002"))
	must(t, one.Forget(ctx, []store.PendingMerge{mine}, "fix-001"))
	fetch(store.Need{Merging: true})
	merges("fix-001")
	wantHeads(t, two, head("fix-002"))
	for name, n := range map[string]store.Need{
		"no branch": {Intent: "fix"}, "a path": {Branch: "main", Intent: "a/b", Task: "fix-001"}, "a pattern": {Branch: "main", Intent: "fix", Task: "f*"},
	} {
		if two.FetchFor(ctx, n) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	bare.git("update-ref", "-d", "refs/heads/main")
	if err := two.FetchFor(ctx, store.Need{Branch: "main"}); !errors.Is(err, git.ErrNoBranch) {
		t.Errorf("a branch that is gone: %v", err)
	}
}

// An origin may list merges before it lists the branch. A merge that was kept
// and made in between is known all the same: with the branch and without the
// record of it, its change would be made a second time.
func TestMergesAreReadAfterTheBranch(t *testing.T) {
	t.Parallel()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	base := bare.head("main")
	s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "clone.git"))
	next := person.commit("next", map[string]string{"a": "b\n"})
	person.git("push", "-q", "origin", "main")
	fetches := 0
	ctx := git.WithObserver(t.Context(), func(ctx context.Context, op git.Operation) (context.Context, func(error)) {
		return ctx, func(error) {
			if op == git.OpFetch {
				if fetches++; fetches == 1 { // the origin had it before the branch moved, and the fetch had read past it
					bare.git("update-ref", "refs/forge/fix/fix-001/merge/1/"+string(base), string(next))
				}
			}
		}
	})
	need := store.Need{Branch: "main", Intent: "fix", Task: "fix-001", Merging: true}
	want := []store.PendingMerge{{Intent: "fix", Task: "fix-001", Number: 1, Parent: base, Commit: next}}
	for _, asked := range []int{2, 3} { // what is where it was known to be costs one question
		must(t, s.FetchFor(ctx, need))
		got, err := s.MergesOf(t.Context(), "fix", "fix-001")
		if diff := cmp.Diff(want, got); diff != "" || err != nil || fetches != asked {
			t.Errorf("%d fetches, %v\n%s", fetches, err, diff)
		}
	}
}
