package git_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

func TestCreateAndLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := gittest.At(t, dir)
	r.Write(".gitignore", ".forge/\n")
	r.Write(".forge/draft.md", "not for the commit\n")
	r.Write("folder/file.txt", "content\n")
	first, err := git.Create(t.Context(), dir, "trunk", "the first", git.Identity{Name: "Nobody", Email: "nobody@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Git("log", "-1", "--format=%H %an <%ae> %s", "trunk"); got != string(first)+" Nobody <nobody@example.org> the first" {
		t.Errorf("commit %s is %s", first, got)
	}
	if got := r.Git("ls-tree", "-r", "--name-only", "trunk"); got != ".gitignore\nfolder/file.txt" {
		t.Errorf("committed:\n%s", got)
	}
	if got := r.Git("status", "--porcelain"); got != "" {
		t.Errorf("status:\n%s", got)
	}

	r.Git("config", "user.name", "A Person")
	r.Git("config", "user.email", "person@example.org")
	second := r.Commit("the second: done", map[string]string{"more.txt": "more\n"})
	store, err := store.OpenLocal(t.Context(), store.LocalConfig{Path: filepath.Join(dir, "folder")})
	if err != nil {
		t.Fatal(err)
	}
	lines, err := store.Log(t.Context(), "", second, 10)
	if err != nil || len(lines) != 2 || lines[0] != (objects.LogLine{Commit: second, Subject: "the second: done"}) || lines[1].Commit != first {
		t.Errorf("log %v, %v", lines, err)
	}
	if lines, err = store.Log(t.Context(), "", second, 1); err != nil || len(lines) != 1 {
		t.Errorf("log of one %v, %v", lines, err)
	}
	if _, err := git.Create(t.Context(), filepath.Join(dir, "missing"), "main", "x", git.Identity{}); err == nil {
		t.Error("made a repository in a directory that does not exist")
	}
	if _, err := os.Stat(filepath.Join(dir, "missing")); !os.IsNotExist(err) {
		t.Errorf("left something: %v", err)
	}
}
