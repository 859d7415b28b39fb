package git_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"pgregory.net/rapid"
)

// Whatever an agent does to files, CommitAll commits what git add -A would, and
// Prepare of any commit afterwards makes the disk equal to it.
func TestCommitAllAndPrepareEqualGit(t *testing.T) {
	testsize.Checks(t, 8, 25)
	r := newRepo(t, map[string]string{"x": "x\n"})
	s := r.store()
	p := newPool(t, s)
	rapid.Check(t, func(rt *rapid.T) {
		old := drawTree(rt, nil)
		r.fastImport(line{"base", []map[string]string{old}}, line{"next", []map[string]string{drawTree(rt, old)}})
		base := r.head("base")
		c, agent := prepare(t, p, "t", base)
		if got := agent.disk(); !maps.Equal(got, old) {
			rt.Fatalf("prepared %v, want %v", got, old)
		}
		personEdits(rt, agent)
		head, err := c.CommitAll(t.Context(), "all", git.Identity{})
		if errors.Is(err, git.ErrNothingToCommit) {
			head, err = base, nil
		}
		if err != nil {
			rt.Fatal(err)
		}
		must(t, os.Remove(filepath.Join(c.Dir(), ".git", "index"))) // so that git reads every file
		agent.git("add", "-A", ".")
		if got, want := r.git("rev-parse", string(head)+"^{tree}"), agent.git("write-tree"); got != want {
			rt.Fatalf("committed\n%s\nwant\n%s", r.git("ls-tree", "-r", got), agent.git("ls-tree", "-r", want))
		}
		if rapid.Bool().Draw(rt, "released") {
			must(t, c.Release())
		}
		next, agent := prepare(t, p, "t", r.head("next"))
		if got, want := agent.git("status", "--porcelain", "--ignored"), ""; got != want {
			rt.Fatalf("after prepare: %s", got)
		}
		if got := agent.git("write-tree"); got != r.git("rev-parse", "next^{tree}") {
			rt.Fatalf("prepared %v", agent.disk())
		}
		must(t, next.Release())
	})
}

// A directory can become a symbolic link to one that has the same names in it,
// and to one that has not.
func TestCommitAllOfADirectoryThatBecameALink(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"d/f": "f\n", "d/sub/g": "g\n", "d-e": "e\n", "same/f": "f\n", "other/h": "h\n"})
	p := newPool(t, r.store())
	for _, target := range []string{"same", "other"} {
		c, agent := prepare(t, p, "t", r.head("main"))
		must(t, os.RemoveAll(filepath.Join(c.Dir(), "d")))
		agent.link(target, "d")
		head, err := c.CommitAll(t.Context(), "linked", git.Identity{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := r.git("ls-tree", "-r", "--name-only", string(head)), "d\nd-e\nother/h\nsame/f"; got != want {
			t.Errorf("committed\n%s\nwant\n%s", got, want)
		}
		must(t, c.Release())
	}
}
