package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

// TestHeadsOfBranches: however git keeps a branch, its head is the commit that git says.
func TestHeadsOfBranches(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"zero": "0"})
	first := r.commit("first", map[string]string{"a": "1"})
	second := r.commit("second", map[string]string{"a": "2"})
	s := r.store()
	r.git("branch", "loose", string(first))
	r.git("branch", "packed", string(first))
	r.git("branch", "moved", string(first))
	r.git("pack-refs", "--all")
	r.git("branch", "-f", "moved", string(second)) // a file before the packed one
	r.git("symbolic-ref", "refs/heads/symbolic", "refs/heads/moved")
	r.git("tag", "-a", "-m", "a tag", "v1", string(first))
	tag := r.git("rev-parse", "v1")
	put := func(branch, text string) {
		if err := os.WriteFile(filepath.Join(r.dir, ".git", "refs", "heads", branch), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("tagged", tag+"\n")
	put("dangling", strings.Repeat("1", 40)+"\n")
	put("torn", "12")
	r.git("branch", "in/a/folder", string(second))
	for branch, want := range map[string]git.OID{
		"loose": first, "packed": first, "moved": second, "symbolic": second, "tagged": first, "in/a/folder": second,
	} {
		if got, err := s.Head(t.Context(), git.Branch(branch)); got != want || err != nil {
			t.Errorf("%s is at %s (%v), want %s", branch, got, err, want)
		}
	}
	for _, branch := range []git.Branch{"none", "dangling", "torn", "in/a", "in"} {
		if got, err := s.Head(t.Context(), branch); err == nil || got != "" {
			t.Errorf("%s is at %q, want an error", branch, got)
		}
	}
	if _, err := s.Head(t.Context(), "none"); !errors.Is(err, git.ErrNoBranch) {
		t.Error(err)
	}
}

// TestTreesOfABranch: what was read before is not read again, and is the same.
func TestTreesOfABranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"zero": "0"})
	s := r.store()
	check := func(limit int) {
		t.Helper()
		want := strings.Fields(r.git("log", "--first-parent", "--format=%T", fmt.Sprintf("--max-count=%d", limit), "HEAD"))
		got, err := s.Trees(t.Context(), r.head("HEAD"), limit)
		if err != nil || !slices.Equal(got, oids(t, want)) {
			t.Errorf("the newest %d: %v (%v), want %v", limit, got, err, want)
		}
		if len(got) > 0 {
			got[0] = "" // the caller's own
		}
	}
	for n := range 4 {
		r.commit("next", map[string]string{"a": fmt.Sprint(n)})
		check(3)
		check(3)
	}
	check(100) // more than before
	check(2)   // fewer
	check(100)
	r.git("checkout", "-q", "-b", "other", "HEAD~2")
	r.commit("aside", map[string]string{"b": "1"})
	check(100)
	r.git("merge", "-q", "--no-ff", "-m", "merge", "main")
	check(100)
	if _, err := s.Trees(t.Context(), git.OID(strings.Repeat("1", 40)), 3); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("of a commit that is not there: %v", err)
	}
}

func oids(t *testing.T, names []string) []git.OID {
	t.Helper()
	list := make([]git.OID, len(names))
	for i, name := range names {
		list[i] = oid(t, name)
	}
	return list
}
