package git_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// processes returns a function that returns how many git processes were started
// since its last call, and by which arguments.
func processes(t *testing.T) func() (int, string) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir, list := t.TempDir(), filepath.Join(t.TempDir(), "list")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>'%s'\nexec '%s' \"$@\"\n", list, program)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return func() (int, string) {
		all, err := os.ReadFile(list)
		if err == nil {
			err = os.Remove(list)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // which is there once one was started
			t.Fatal(err)
		}
		return bytes.Count(all, []byte("\n")), string(all)
	}
}

// TestProcessesOfAChange: a change that a recipe makes, and a merge into a branch that a
// person has checked out, start no more git processes than it takes: each costs milliseconds.
func TestProcessesOfAChange(t *testing.T) {
	started := processes(t)
	r := newRepo(t, map[string]string{"a": "a\n", "dir/b": "b\n"})
	s := r.store()
	p := newPool(t, s)
	r.git("gc", "-q") // none of the person's goes on
	base := r.head("main")
	for turn, most := range []int{9, 5} { // the first one starts the process that reads objects, and writes its working tree
		name := fmt.Sprintf("line-%03d", turn)
		started()
		c, err := p.Prepare(t.Context(), git.Name(name), base)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = started() // that depends on what was in the tree before
		if err := os.WriteFile(filepath.Join(c.Dir(), "a"), fmt.Appendln(nil, turn), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CommitAll(t.Context(), "a line\n", git.Identity{}); err != nil {
			t.Fatal(err)
		}
		got, err := c.Collect(t.Context(), store.Attempt{Intent: "line", Task: git.Name(name), Number: 1})
		if err != nil || got.Commits != 1 || len(got.Changes) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		if n, list := started(); n > most {
			t.Errorf("the change started %d processes:\n%s", n, list)
		}
		if err := c.Release(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Merge(t.Context(), "main", base, got.Head); err != nil {
			t.Fatal(err)
		}
		if n, list := started(); n > 5 {
			t.Errorf("the merge started %d processes:\n%s", n, list)
		}
		base = got.Head
	}
}
