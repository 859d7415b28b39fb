// Package gittest makes repositories for tests, with real git.
//
// Repo is a person's working copy: tests write, commit and read there as a person
// would, and clone it with Origin where services need a remote. Git runs without the
// settings, hooks and maintenance of the machine, so a test is the same everywhere.
package gittest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
)

// Repo is a person's repository.
type Repo struct {
	T   testing.TB
	Dir string
}

// New makes a repository on branch main with one commit that has the given files.
func New(t testing.TB, files map[string]string) Repo {
	t.Helper()
	r := Repo{T: t, Dir: filepath.Join(testdir.New(t), "repo")}
	r.must(os.MkdirAll(r.Dir, 0o755))
	Init(t, r.Dir)
	r.Commit("first", files)
	return r
}

// Init makes an empty repository on branch main of a directory, with the settings of a
// person. Git tidies up nothing in it by itself, and has no hooks to copy.
func Init(t testing.TB, dir string) {
	t.Helper()
	r := At(t, dir)
	r.Git("init", "-q", "-b", "main", "--template=")
	config, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
	r.must(err)
	_, err = config.WriteString("[user]\n\tname = A Person\n\temail = person@example.org\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n")
	r.must(errors.Join(err, config.Close()))
}

// Origin makes a bare clone of the repository, and returns its path.
func (r Repo) Origin() string {
	r.T.Helper()
	dir := filepath.Join(testdir.New(r.T), "origin.git")
	r.Git("clone", "-q", "--bare", r.Dir, dir)
	return dir
}

// At is a repository that exists.
func At(t testing.TB, dir string) Repo {
	t.Helper()
	return Repo{T: t, Dir: dir}
}

// Git runs git as a person would, and returns its output without the last newline.
func (r Repo) Git(args ...string) string {
	r.T.Helper()
	cmd := exec.CommandContext(context.Background(), "git", args...) // cleanups run git too
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
		"GIT_EDITOR=true", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.T.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// Commit writes files, of which an empty one is deleted, and commits them.
func (r Repo) Commit(message string, files map[string]string) git.OID {
	r.T.Helper()
	var added []string
	for name, content := range files {
		if content == "" {
			r.Git("rm", "-q", "--", name)
			continue
		}
		r.Write(name, content)
		added = append(added, name)
	}
	if len(added) > 0 {
		r.Git(append([]string{"add", "-f", "--"}, added...)...)
	}
	r.Git("commit", "-q", "--allow-empty", "-m", message)
	return r.Head("HEAD")
}

// Write writes a file without committing it.
func (r Repo) Write(name, content string) {
	r.T.Helper()
	path := filepath.Join(r.Dir, name)
	r.must(os.MkdirAll(filepath.Dir(path), 0o755))
	r.must(os.WriteFile(path, []byte(content), 0o644))
}

// Head returns the commit that a revision names.
func (r Repo) Head(rev string) git.OID {
	r.T.Helper()
	o, err := git.ParseOID(r.Git("rev-parse", "--verify", rev+"^{commit}"))
	r.must(err)
	return o
}

// Show returns a file of a commit.
func (r Repo) Show(rev, file string) string {
	r.T.Helper()
	return r.Git("show", rev+":"+file)
}

func (r Repo) must(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}
