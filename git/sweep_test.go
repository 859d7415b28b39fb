package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
)

func keepsHidden(t *testing.T, s *store.Store, at git.OID, intents ...git.Name) {
	t.Helper()
	for _, intent := range intents {
		a := store.Attempt{Intent: intent, Task: intent + "-001", Number: 1, Newest: true}
		if _, err := s.Keep(t.Context(), a, at); err != nil {
			t.Fatal(err)
		}
		must(t, s.KeepPendingMerge(t.Context(), store.PendingMerge{Intent: intent, Task: a.Task, Number: 1, Parent: at, Commit: at}))
	}
}

func wantHidden(t *testing.T, what string, got store.Hidden, err error, want ...git.Name) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	counts, wanted := map[git.Name]int{}, map[git.Name]int{}
	for name, refs := range got {
		counts[name] = len(refs)
	}
	for _, name := range want {
		wanted[name] = 3 // a commit, a merge, a head
	}
	if diff := cmp.Diff(wanted, counts); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// Only what is of the named intents goes, whatever others are called.
func TestSweep(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s := r.store()
	keepsHidden(t, s, r.head("main"), "fix", "fix-001", "fix-it", "other")
	r.git("gc", "-q")
	keepsHidden(t, s, r.head("main"), "late")
	for range 2 {
		must(t, s.Sweep(t.Context(), "fix", "late", "unknown"))
		got, err := s.HiddenRefs(t.Context())
		wantHidden(t, "the repository", got, err, "fix-001", "fix-it", "other")
	}
	must(t, s.Sweep(t.Context()))
	r.git("fsck", "--strict")
}

// Two clones sweep at the same time; each is rid of it then, and so is the
// origin. A third one drops its own.
func TestSweepAtAnOrigin(t *testing.T) {
	t.Parallel()
	bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
	replica := func(name string) *store.Store { return openOrigin(t, bare.dir, filepath.Join(t.TempDir(), name)) }
	one, two, three := replica("one.git"), replica("two.git"), replica("three.git")
	tip, err := one.Head(t.Context(), "main")
	must(t, err)
	keepsHidden(t, one, tip, "fix", "more")
	keepsHidden(t, two, tip, "other")
	must(t, three.FetchIntent(t.Context(), "fix"))
	must(t, three.Fetch(t.Context()))
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i, s := range []*store.Store{one, two} {
		both.Go(func() { errs[i] = s.Sweep(t.Context(), "fix", "more") })
	}
	both.Wait()
	if errs[0] != nil || errs[1] != nil {
		t.Error(errs)
	}
	got, err := one.HiddenRefs(t.Context())
	wantHidden(t, "the origin", got, err, "other")
	must(t, three.SweepHere(t.Context(), "fix", "more"))
	for _, s := range []*store.Store{one, three} {
		got, err := s.HiddenHere(t.Context())
		if len(got["fix"])+len(got["more"]) > 0 || err != nil {
			t.Errorf("a clone keeps %v, %v", got, err)
		}
	}
}

// What an origin forbids is told in its own words.
func TestSweepOfAnOriginThatForbidsIt(t *testing.T) {
	t.Parallel()
	bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
	s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "clone.git"))
	tip, err := s.Head(t.Context(), "main")
	must(t, err)
	keepsHidden(t, s, tip, "fix")
	hook := filepath.Join(bare.dir, "hooks", "pre-receive")
	must(t, os.MkdirAll(filepath.Dir(hook), 0o700))
	must(t, os.WriteFile(hook, []byte("#!/bin/sh\necho nothing is deleted here >&2\nexit 1\n"), 0o700))
	if err := s.Sweep(t.Context(), "fix"); err == nil || !strings.Contains(err.Error(), "nothing is deleted here") || strings.Contains(err.Error(), " :refs/") {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(hook))
	again := filepath.Join(bare.dir, "hooks", "post-receive")
	must(t, os.WriteFile(again, []byte("#!/bin/sh\nwhile read old new ref; do git update-ref \"$ref\" "+string(tip)+"; done\n"), 0o700))
	if err := s.Sweep(t.Context(), "fix"); err == nil || !strings.Contains(err.Error(), "they are there again") {
		t.Errorf("what comes back: %v", err)
	}
	must(t, os.Remove(again))
	must(t, s.Sweep(t.Context(), "fix"))
}

// TestRefLocksAreWaitedFor: another git, such as a gc of the person, holds the lock of a ref
// for longer than the tenth of a second that git waits by itself, and nothing fails by that.
func TestRefLocksAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := newRepo(t, map[string]string{"a": "a\n"}).store()
	out, err := git.Run(t.Context(), s.RefCommand(), "config", "--get-regexp", `^core\..*timeout$`)
	if diff := cmp.Diff("core.filesreflocktimeout 10000\ncore.packedrefstimeout 10000\n", string(out)); err != nil || diff != "" {
		t.Error(err, diff)
	}
}
