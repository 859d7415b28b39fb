package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/objects"
)

func TestForgeFilesAreNeverCommitted(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", ".gitignore": "!.forge/\n!/.forge\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	outside := t.TempDir()
	agent.link(outside, ".forge")
	must(t, c.WriteFile("task.yaml", []byte("one\n")))
	must(t, c.WriteFile("task.yaml", []byte("two\n")))
	if got := agent.read(".forge/task.yaml"); got != "two\n" {
		t.Fatal(got)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Fatal("written through the agent's link")
	}
	for _, bad := range []string{"", "../x", "a/b", ".."} {
		if c.WriteFile(bad, nil) == nil {
			t.Errorf("file name %q was accepted", bad)
		}
	}
	if _, err := c.CommitAll(t.Context(), "x", git.Identity{}); !errors.Is(err, git.ErrNothingToCommit) {
		t.Fatal(err)
	}
	agent.write("a", "b\n")
	o, err := c.CommitAll(t.Context(), "x", git.Identity{})
	if err != nil || agent.git("show", "--name-only", "--format=", string(o)) != "a" {
		t.Fatal(err)
	}
	if got, err := c.Collect(t.Context(), attempt("t")); err != nil || got.Leftover != "" {
		t.Fatal(got, err)
	}
}

// A recipe may commit by itself, leave more, and be tried again.
func TestCommitAll(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", "gone": "x\n", "run": "#!/bin/sh\n", "kind": "file\n", ".gitignore": "*.log\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	agent.write("a", "by itself\n")
	agent.git("commit", "-qam", "by itself")
	agent.write("new/file", "n\n")
	agent.write("x.log", "ignored\n")
	must(t, os.Remove(filepath.Join(c.Dir(), "gone")))
	must(t, os.Chmod(filepath.Join(c.Dir(), "run"), 0o755))
	must(t, os.Remove(filepath.Join(c.Dir(), "kind")))
	agent.write("kind/now", "a directory\n")
	agent.link("a", "link")
	o, err := c.CommitAll(t.Context(), "Subject\n\nBody\x00 of it", git.Identity{Name: "Recipe <x>\n", Email: "recipe@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	want := "A link\nA new/file\nD gone\nD kind\nA kind/now\nM run"
	got := strings.Split(strings.ReplaceAll(agent.git("diff-tree", "-r", "--no-commit-id", "--name-status", string(o)), "\t", " "), "\n")
	wanted := strings.Split(want, "\n")
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("committed %q", got)
	}
	if s := agent.git("log", "-1", "--format=%an <%ae> %cn|%B"); s != "Recipe x <recipe@example.org> pfl-forge|Subject\n\nBody of it" {
		t.Errorf("%q", s)
	}
	if agent.git("status", "--porcelain", "-b") != "## forge/t" || agent.read("x.log") != "ignored\n" {
		t.Error("the checkout is not at its commit")
	}
	res, err := c.Collect(t.Context(), attempt("t"))
	if err != nil || res.Commits != 2 || res.Head != o || res.Leftover != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	agent.write("later", "l\n") // a second Collect looks at the files again
	if res, err := c.Collect(t.Context(), attempt("t")); err != nil || agent.git("show", "--name-only", "--format=", string(res.Leftover)) != "later" {
		t.Fatalf("%+v, %v", res, err)
	}
}

// TestChanged: whatever CommitAll would commit is a change, and what a command
// committed by itself. It can be asked again and again.
func TestChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *checkout.Checkout, agent repo){
		"":             func(_ *checkout.Checkout, agent repo) { agent.write("x.log", "ignored\n") },
		"a file":       func(_ *checkout.Checkout, agent repo) { agent.write("new/file", "n\n") },
		"other words":  func(_ *checkout.Checkout, agent repo) { agent.write("a", "b\n") },
		"no file":      func(c *checkout.Checkout, _ repo) { must(t, os.Remove(filepath.Join(c.Dir(), "a"))) },
		"another mode": func(c *checkout.Checkout, _ repo) { must(t, os.Chmod(filepath.Join(c.Dir(), "a"), 0o755)) },
		"a commit":     func(_ *checkout.Checkout, agent repo) { agent.git("commit", "-q", "--allow-empty", "-m", "by itself") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t, map[string]string{"a": "a\n", ".gitignore": "*.log\n"})
			c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
			for _, want := range []bool{false, name != "", name != ""} {
				if got, err := c.Changed(t.Context()); got != want || err != nil {
					t.Fatalf("%t, %v; want %t", got, err, want)
				}
				if !want {
					change(c, agent)
				}
			}
			if _, err := c.CommitAll(t.Context(), "x", git.Identity{}); name != "" && name != "a commit" && err != nil {
				t.Error(err)
			}
		})
	}
}

// After Restore the index has other files than the commit that the checkout is at.
func TestCommitAllAfterRestore(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", "b": "b\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	agent.write("a", "under way\n")
	agent.write("n", "new\n")
	saved, err := c.Checkpoint(t.Context(), attempt("t"), checkout.Checkpoint{})
	must(t, err)
	again, agent := prepare(t, newPool(t, r.store()), "u", r.head("main"))
	must(t, again.Restore(t.Context(), saved.Work))
	o, err := again.CommitAll(t.Context(), "all", git.Identity{})
	if err != nil || agent.git("diff-tree", "-r", "--no-commit-id", "--name-only", string(o)) != "a\nn" {
		t.Fatal(o, err)
	}
}

// Repositories inside: their files are saved, but CommitAll refuses to guess.
func TestRepositoryInside(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	agent.git("init", "-q", "inner")
	inner := agent.at(filepath.Join(c.Dir(), "inner"))
	inner.config()
	inner.commit("inner", map[string]string{"f": "f\n"})
	if _, err := c.CommitAll(t.Context(), "x", git.Identity{}); !isFault(err, git.Unsafe, "inner") {
		t.Fatal(err)
	}
	got, err := c.Collect(t.Context(), attempt("t"))
	if err != nil || r.git("show", "--name-only", "--format=", string(got.Leftover)) != "inner/f" {
		t.Fatal(got, err)
	}
}

func TestStrayHeadIsKept(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	agent.git("checkout", "-q", "-b", "elsewhere")
	stray := agent.commit("on another branch", map[string]string{"a": "b\n"})
	got, err := c.Collect(t.Context(), attempt("t"))
	if err != nil || got.Commits != 0 || got.Stray != stray || got.Leftover == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if r.head("refs/forge/intent/t/1/stray-"+stray.Short()) != stray {
		t.Fatal("not kept")
	}
	if r.git("show", string(got.Leftover)+":a") != "b" {
		t.Fatal("the leftover is not the working tree")
	}
}

func TestPackedBranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	c, agent := prepare(t, newPool(t, r.store()), "t", r.head("main"))
	for i := range 250 { // more than is kept as loose objects
		agent.write("many/"+strings.Repeat("x", i%9)+string(rune('a'+i%26))+strings.Repeat("y", i/26), strings.Repeat("z", i))
	}
	agent.git("add", "-A")
	agent.git("commit", "-qm", "many")
	agent.git("gc", "-q")
	if exists(filepath.Join(c.Dir(), ".git/refs/heads/forge/t")) {
		t.Fatal("gc did not pack the branch")
	}
	got, err := c.Collect(t.Context(), attempt("t"))
	if err != nil || got.Commits != 1 || got.Head != agent.head("HEAD") {
		t.Fatal(got, err)
	}
	r.git("fsck", "--strict")
}

func TestLimitsOnWhatComesIn(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	for name, limits := range map[string]objects.Limits{
		"bytes":   {Bytes: 300},
		"objects": {Objects: 5},
	} {
		p, err := checkout.NewPool(t.Context(), checkout.PoolConfig{Dir: filepath.Join(t.TempDir(), "w"), Store: r.store(), Limits: limits})
		must(t, err)
		c, agent := prepare(t, p, "t", r.head("main"))
		for _, f := range []string{"1", "2", "3", "4"} {
			agent.write(f, strings.Repeat(f+name+c.Dir(), 100)+r.t.TempDir())
		}
		agent.git("add", "-A")
		agent.git("commit", "-qm", "much")
		var w *git.WorkError
		if _, err := c.Collect(t.Context(), attempt("t")); !errors.As(err, &w) || w.Fault != git.Oversized {
			t.Errorf("%s: %v", name, err)
		}
		must(t, p.Close())
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s, base := r.store(), r.head("main")
	p := newPool(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Prepare(ctx, "t", base); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	next := r.proposal(map[string]string{"a": "b\n"})
	if _, err := s.Merge(ctx, "main", base, next); !errors.Is(err, context.Canceled) || r.head("main") != base {
		t.Error(err)
	}
	if _, _, err := s.Diff(ctx, base, next, 100); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	r.noLocks()
	prepare(t, p, "t", base)
}
