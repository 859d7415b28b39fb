package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// TestOpenLocalFindsTheFiles opens repositories whose git directory is not the working tree's .git.
// A wrong answer would leave the person's files behind, as if they had deleted what was merged.
func TestOpenLocalFindsTheFiles(t *testing.T) {
	t.Parallel()
	open := func(dir string) (*store.Store, error) {
		return store.OpenLocal(t.Context(), store.LocalConfig{Path: dir})
	}
	finds := func(dir, want string) *store.Store {
		t.Helper()
		s, err := open(dir)
		if err != nil || s.WorkTree() != want {
			t.Fatalf("found %v, %v; want %s", s, err, want)
		}
		return s
	}
	t.Run("submodule", func(t *testing.T) {
		library, r := newRepo(t, map[string]string{"a": "a\n"}), newRepo(t, map[string]string{"b": "b\n"})
		r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library.dir, "lib")
		lib := r.at(filepath.Join(r.dir, "lib"))
		lib.config()
		s := finds(lib.dir, lib.dir)
		finds(r.dir, r.dir)
		base := lib.head("main")
		lib.git("checkout", "-q", "-b", "other")
		next := lib.commit("next", map[string]string{"new": "new\n"})
		lib.git("checkout", "-q", "main")
		if _, err := s.Merge(t.Context(), "main", base, next); err != nil {
			t.Fatal(err)
		}
		if got := lib.git("status", "--short"); got != "" || lib.read("new") != "new\n" {
			t.Errorf("the files did not follow: %s", got)
		}
	})
	t.Run("separate git directory", func(t *testing.T) {
		r := newRepo(t, map[string]string{"a": "a\n", "sub/b": "b\n"})
		r.git("init", "-q", "--separate-git-dir", filepath.Join(filepath.Dir(r.dir), "elsewhere"))
		finds(filepath.Join(r.dir, "sub"), r.dir)
		linked := filepath.Join(t.TempDir(), "linked")
		r.git("worktree", "add", "-q", "-b", "linked", linked)
		if _, err := open(linked); err == nil || errors.Is(err, git.ErrNotRepository) {
			t.Errorf("a linked working tree does not know where the main one is: %v", err)
		}
	})
	t.Run("linked working tree", func(t *testing.T) {
		r := newRepo(t, map[string]string{"a": "a\n"})
		linked := filepath.Join(t.TempDir(), "linked")
		r.git("worktree", "add", "-q", "-b", "linked", linked)
		finds(linked, r.dir)
		finds(filepath.Join(r.dir, ".git"), r.dir)
	})
	t.Run("a newline in its name", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "two\nlines")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r := repo{t: t, dir: dir}
		r.git("init", "-q", "-b", "main")
		finds(dir, dir)
	})
}

// TestPoolTakesNoOtherDirectory: everything in a Pool's directory is removed sooner or later.
func TestPoolTakesNoOtherDirectory(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s, dir := r.store(), t.TempDir()
	precious := filepath.Join(dir, "precious", "work")
	if err := os.MkdirAll(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := checkout.NewPool(t.Context(), checkout.PoolConfig{Dir: dir, Store: s}); !errors.Is(err, git.ErrForeign) {
		t.Errorf("took a directory that is not its own: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v in it", entries, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "precious")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // an empty one, and then its own
		p, err := checkout.NewPool(t.Context(), checkout.PoolConfig{Dir: dir, Store: s})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
