package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// newOrigin makes a bare repository with the files on main, and a person's clone of it.
func newOrigin(t *testing.T, files map[string]string) (bare, person repo) {
	t.Helper()
	person = newRepo(t, files)
	bare = person.at(filepath.Join(t.TempDir(), "origin.git"))
	person.git("clone", "-q", "--bare", person.dir, bare.dir)
	person.git("remote", "add", "origin", bare.dir)
	return bare, person
}

func openOrigin(t *testing.T, url, dir string) *store.Store {
	t.Helper()
	s, err := store.OpenOrigin(t.Context(), store.OriginConfig{URL: url, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOriginThatKeepsNothing tells an origin whose hook refuses all that is
// below refs/forge from one that refuses one change.
func TestOriginThatKeepsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook   string // of pre-receive, for each line that it reads
		closed bool
	}{
		"all":      {`case $ref in refs/forge/*) echo "refs/forge is closed" >&2; exit 1;; esac`, true},
		"a change": {`git ls-tree --name-only "$new" | grep -q left && { echo "left is a secret" >&2; exit 1; }`, false},
	} {
		t.Run(name, func(t *testing.T) {
			bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
			s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "clone.git"))
			must(t, s.TakesWork(t.Context()))
			c2, agent := prepare(t, newPool(t, s), "t", bare.head("main"))
			agent.write("left", "x\n")
			agent.git("add", "left")
			agent.git("commit", "-qm", "work")
			hook := filepath.Join(bare.dir, "hooks", "pre-receive")
			must(t, os.MkdirAll(filepath.Dir(hook), 0o700))
			must(t, os.WriteFile(hook, []byte("#!/bin/sh\nwhile read -r old new ref; do "+c.hook+"; done; exit 0\n"), 0o700))
			_, err := c2.Collect(t.Context(), attempt("t"))
			words, refused := git.Refusal(err)
			if !refused || git.Unserved(err) != c.closed || !strings.Contains(words, "left is a secret") && !strings.Contains(words, "refs/forge is closed") {
				t.Errorf("refused %t, of all %t: %q", refused, git.Unserved(err), words)
			}
			if err := s.TakesWork(t.Context()); git.Unserved(err) != c.closed || (err != nil) != c.closed {
				t.Errorf("asked: %v", err)
			}
			must(t, os.Remove(hook))
			must(t, s.TakesWork(t.Context()))
			if refs := bare.git("for-each-ref", "refs/forge/_probe"); refs != "" {
				t.Errorf("left: %s", refs)
			}
			if _, err := c2.Collect(t.Context(), attempt("t")); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
		})
	}
}

func TestOriginJourney(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	one := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "one.git"))
	two := openOrigin(t, "file://"+bare.dir, filepath.Join(t.TempDir(), "two.git"))
	base, err := one.Inspect(ctx, "main")
	if err != nil || base != bare.head("main") {
		t.Fatal(base, err)
	}
	c, agent := prepare(t, newPool(t, one), "t", base)
	agent.write("a", "b\n")
	agent.git("commit", "-qam", "work")
	agent.write("left", "x\n")
	got, err := c.Collect(ctx, attempt("t"))
	if err != nil {
		t.Fatal(err)
	}
	if bare.head(got.Ref) != got.Head || bare.head(attempt("t").LeftoverRef(got.Leftover)) != got.Leftover {
		t.Fatal("the origin does not have it")
	}
	if two.Has(ctx, got.Head) {
		t.Fatal("nobody fetched it")
	}
	if err := two.FetchIntent(ctx, "intent"); err != nil || !two.Has(ctx, got.Head) || !two.Has(ctx, got.Leftover) {
		t.Fatal("another replica cannot go on", err)
	}
	onto := person.commit("a person's", map[string]string{"p": "p\n"})
	person.git("push", "-q", "origin", "main")
	if _, err := two.Merge(ctx, "main", base, got.Head); !errors.Is(err, git.ErrMoved) || bare.head("main") != onto {
		t.Fatal(err)
	}
	rebased, err := two.Rebase(ctx, base, got.Head, onto) // the refusal fetched
	if err != nil {
		t.Fatal(err)
	}
	if res, err := two.Merge(ctx, "main", onto, rebased.Head); err != nil || res.AlreadyMerged || bare.head("main") != rebased.Head {
		t.Fatalf("%+v, %v", res, err)
	}
	if head, err := two.Head(ctx, "main"); err != nil || head != rebased.Head {
		t.Fatal(head, err)
	}
	if res, err := two.Merge(ctx, "main", onto, rebased.Head); err != nil || !res.AlreadyMerged {
		t.Fatalf("again: %+v, %v", res, err)
	}
	if err := one.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	if res, err := one.Merge(ctx, "main", onto, rebased.Head); err != nil || !res.AlreadyMerged {
		t.Fatalf("by the other one: %+v, %v", res, err)
	}
	if err := two.Sweep(ctx, "intent"); err != nil || bare.git("for-each-ref", "refs/forge") != "" {
		t.Fatal("kept refs stay", err)
	}
	bare.git("fsck", "--strict")
}

// What is on the origin's branch is merged, also when our copy of the branch cannot follow.
func TestOriginMergesBesideABrokenClone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
	dir := filepath.Join(t.TempDir(), "clone.git")
	s := openOrigin(t, bare.dir, dir)
	base := bare.head("main")
	c, agent := prepare(t, newPool(t, s), "t", base)
	agent.write("a", "b\n")
	head, err := c.CommitAll(ctx, "work", git.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(dir, "refs/heads/main.lock") // of a git that was killed
	must(t, os.MkdirAll(filepath.Dir(lock), 0o755))
	must(t, os.WriteFile(lock, nil, 0o600))
	if _, err := s.Merge(ctx, "main", base, head); err != nil || bare.head("main") != head {
		t.Fatal(err)
	}
}

func TestOriginPushRace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, _ := newOrigin(t, map[string]string{"a": "a\n"})
	base := bare.head("main")
	const racers = 4
	results := make([]error, racers)
	var wg sync.WaitGroup
	for i := range racers {
		s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), fmt.Sprint(i)))
		c, agent := prepare(t, newPool(t, s), "t", base)
		agent.write("a", fmt.Sprint(i))
		head, err := c.CommitAll(ctx, "work", git.Identity{})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { _, results[i] = s.Merge(ctx, "main", base, head) })
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, git.ErrMoved) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Fatalf("%d of %d won", won, racers)
	}
}

func TestOriginCloneIsReplacedWhenBroken(t *testing.T) {
	t.Parallel()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	for _, hurt := range []struct {
		name string
		do   func(t *testing.T, dir string)
	}{
		{"HEAD gone", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "HEAD"))) }},
		{"objects gone", func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "objects"))) }},
		{"config broken", func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "config"), []byte("[core"), 0o600))
		}},
		{"ref broken", func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, "refs/heads"), 0o755))
			must(t, os.WriteFile(filepath.Join(dir, "refs/heads/main"), []byte(strings.Repeat("1", 40)+"\n"), 0o600))
		}},
		{"locks of a killed git", func(t *testing.T, dir string) {
			for _, name := range []string{"refs/heads/main.lock", "packed-refs.lock"} {
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
				must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
			}
			person.git("commit", "-q", "--allow-empty", "-m", "more") // so there is a ref to lock
			person.git("push", "-q", bare.dir, "main")
		}},
		{"half a clone", func(t *testing.T, dir string) { must(t, os.Rename(dir, dir+".new")) }},
		{"a file", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir))
			must(t, os.WriteFile(dir, []byte("x"), 0o600))
		}},
	} {
		t.Run(hurt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "clone.git")
			openOrigin(t, bare.dir, dir)
			hurt.do(t, dir)
			s := openOrigin(t, bare.dir, dir)
			head, err := s.Head(t.Context(), "main")
			if err != nil || head != bare.head("main") {
				t.Fatal(head, err)
			}
			if _, err := s.ReadFile(t.Context(), head, "a", 100); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(dir + ".[on]*"); len(left) > 0 {
				t.Fatalf("left behind: %q", left)
			}
		})
	}
	for _, url := range []string{"", "-u", "ext::sh -c id", "--upload-pack=x", "ssh://-oProxyCommand=x/y", "relative"} {
		if _, err := store.OpenOrigin(t.Context(), store.OriginConfig{URL: url, Dir: filepath.Join(t.TempDir(), "c")}); err == nil {
			t.Errorf("%q was accepted", url)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
