package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
)

// What an agent does is saved while it works, and another replica goes on from there.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", "gone": "x\n"})
	origin := filepath.Join(t.TempDir(), "origin.git")
	r.git("clone", "-q", "--bare", r.dir, origin)
	one := openOrigin(t, origin, filepath.Join(t.TempDir(), "clone"))
	c, agent := prepare(t, newPool(t, one), "t", r.head("main"))
	save := func(since checkout.Checkpoint) checkout.Checkpoint {
		t.Helper()
		now, err := c.Checkpoint(t.Context(), attempt("t"), since)
		must(t, err)
		return now
	}
	first := save(checkout.Checkpoint{})
	if first.Head != r.head("main") || first.Last != "" || first.Work != "" {
		t.Errorf("an untouched checkout: %+v", first)
	}
	agent.write("begun", "one\n")
	begun := save(first)
	if begun.Work == "" || save(begun) != begun {
		t.Errorf("got %+v", begun)
	}
	agent.commit("done", map[string]string{"begun": "two\n"})
	done := save(begun)
	if done.Head != agent.head("HEAD") || done.Work != "" || done.Last != begun.Last {
		t.Errorf("got %+v", done)
	}
	agent.write("a", "b\n")
	agent.write("dir/new", "n\n")
	must(t, os.Remove(filepath.Join(c.Dir(), "gone")))
	last := save(done)

	at := repo{t: t, dir: origin}
	ref := "refs/forge/intent/t/1/checkpoint"
	if at.head(ref) != last.Last || at.git("show", ref+"^2:begun") != "one" {
		t.Error("an earlier state is lost")
	}
	if at.head("refs/forge/intent/t/1/"+done.Head.Short()) != done.Head {
		t.Error("the commits are not at the origin")
	}

	two := openOrigin(t, origin, filepath.Join(t.TempDir(), "clone"))
	must(t, two.FetchIntent(t.Context(), "intent"))
	other, next := prepare(t, newPool(t, two), "t", last.Head)
	must(t, other.Restore(t.Context(), last.Work))
	if next.read("a") != "b\n" || next.read("begun") != "two\n" || next.read("dir/new") != "n\n" || exists(filepath.Join(other.Dir(), "gone")) {
		t.Error("the files are not those that were saved")
	}
	if got := next.git("status", "--porcelain", "-b"); strings.ReplaceAll(got, "\n", "|") != "## forge/t|M  a|A  dir/new|D  gone" {
		t.Errorf("got %q", got)
	}
	next.git("commit", "-qm", "and on")
	got, err := other.Collect(t.Context(), attempt("t"))
	if err != nil || got.Commits != 1 || got.Leftover != "" || next.git("rev-parse", "HEAD^") != string(done.Head) {
		t.Errorf("%+v, %v", got, err)
	}
}

// What cannot be saved just now is said, and what was saved before stays.
func TestCheckpointOfBadWork(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	agent.write("a", "b\n")
	good, err := c.Checkpoint(t.Context(), attempt("t"), checkout.Checkpoint{})
	must(t, err)
	agent.git("add", "a")
	agent.git("commit", "-q", "--amend", "-m", "rewritten")
	if got, err := c.Checkpoint(t.Context(), attempt("t"), good); !isFault(err, git.Rewritten, "") || got != good {
		t.Errorf("%+v, %v", got, err)
	}
	must(t, os.RemoveAll(filepath.Join(c.Dir(), ".git")))
	if got, err := c.Checkpoint(t.Context(), attempt("t"), good); !isFault(err, git.Damaged, ".git") || got != good {
		t.Errorf("%+v, %v", got, err)
	}
}

// A git that was killed left its locks.
func TestUnlock(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	p := newPool(t, r.store())
	c, agent := prepare(t, p, "t", r.head("main"))
	agent.write("a", "b\n")
	agent.write(".git/index.lock", "")
	agent.write(".git/refs/heads/forge/t.lock", "")
	again, err := p.Recover("t")
	must(t, err)
	must(t, again.Unlock())
	agent.git("commit", "-qam", "goes on")
	must(t, os.RemoveAll(filepath.Join(c.Dir(), ".git")))
	if err := again.Unlock(); !errors.Is(err, git.ErrMissing) {
		t.Error(err)
	}
}
