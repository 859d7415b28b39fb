package implementer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// smallWorld is a world in which one agent works at a time, so that there are
// at most two checkouts.
func smallWorld(t *testing.T, a ...agent.Agent) *world {
	t.Helper()
	r := gittest.New(t, map[string]string{
		"pfl-forge.yaml": "parallel_workers: 1\n" + settings, "a.txt": "a\n", ".gitignore": "*.log\n",
	})
	return worldOn(t, r, repotest.Local(t, r.Dir, a...), bustest.Start(t))
}

// checkouts counts the working trees on the disk.
func (w *world) checkouts() int {
	w.t.Helper()
	n := 0
	for _, pattern := range []string{"[^.]*", ".warm/*"} {
		list, err := filepath.Glob(filepath.Join(w.repo.Dir, ".forge", "worktrees", pattern))
		if err != nil {
			w.t.Fatal(err)
		}
		n += len(list)
	}
	return n
}

// others has tasks of other intents implemented, until no checkout is left of those before.
func (w *world) others() {
	w.t.Helper()
	for i := range 3 {
		c := recipe(1, "write", "FILE", fmt.Sprintf("other%d.txt", i), "TEXT", "x")
		id := forge.IntentID(fmt.Sprintf("other%d", i))
		c.To.Intent, c.Intent.ID, c.Task.IntentID = id, id, id
		c.Task.ID = forge.TaskID(id + "-001")
		c.Attempt.Task = c.Task.ID
		w.implemented(c)
		if n := w.checkouts(); n > 2 {
			w.t.Fatalf("%d checkouts for one worker, want at most two", n)
		}
	}
	if _, err := os.Stat(filepath.Join(w.repo.Dir, ".forge", "worktrees", "fix-001")); err == nil {
		w.t.Fatal("the first task still has its checkout")
	}
}

// A task gives its checkout back when its commits are collected. What follows
// goes on from the commits.
func TestReworkWithoutTheCheckout(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	w := smallWorld(t)
	first := w.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "one"))
	w.others()
	again := recipe(2, "write", "FILE", "new.txt", "TEXT", "two")
	again.Task.Base, again.Task.Head = first.Base, first.Head
	second := w.implemented(again)
	if second.Base != first.Base || second.Commits != 2 || w.repo.Show(second.Head, "new.txt") != "one\ntwo" {
		t.Errorf("got %+v", second)
	}
}

// An attempt that is delivered again is reported as it was, though its checkout
// is gone, and nobody works again.
func TestRedeliveryWithoutTheCheckout(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for _, name := range []string{"write", "fails"} {
		t.Run(name, func(t *testing.T) {
			w := smallWorld(t)
			c := recipe(1, name)
			if name == "write" {
				c.Intent.With = map[string]string{"FILE": "new.txt", "TEXT": "once"}
			}
			first := w.implement(c)
			w.others()
			again := w.implement(c)
			if diff := cmp.Diff(first.Output, again.Output); diff != "" {
				t.Error(diff)
			}
			if again.Usage != first.Usage {
				t.Errorf("%+v, %+v", first.Usage, again.Usage)
			}
		})
	}
}

// An attempt that a limit stopped gives its checkout back as well. Who goes on
// has its commits and what it did not commit, and sets up the checkout again.
func TestContinueWithoutTheCheckout(t *testing.T) {
	t.Parallel()
	a := &worker{
		script: "echo b > new.txt; git add -A; git commit -qm one; echo half > half.txt; echo x > x.log",
		answer: answer, err: agent.Fail(forge.FailTimeout, "it took too long"),
	}
	w := smallWorld(t, a)
	fails(t, w.implement(goal(1)), forge.FailTimeout, "too long")
	w.others()
	a.script, a.err = "test \"$(cat half.txt)\" = half; test ! -e x.log; git add -A; git commit -qm two", nil
	c := goal(1)
	c.Attempt.Number = 2
	forge.As[*forge.ImplementInput](c.Input).Continue = true
	im := w.implemented(c)
	if diff := cmp.Diff([]string{"half.txt", "new.txt"}, im.Files); diff != "" || im.Commits != 2 {
		t.Errorf("%+v\n%s", im, diff)
	}
	allIsThere(t, a.prompt)
}

// allIsThere checks that a prompt says that the work of the attempt before is in the
// working directory, and does not say at the same time that it is elsewhere.
func allIsThere(t *testing.T, prompt string) {
	t.Helper()
	prompt = strings.Join(strings.Fields(prompt), " ")
	if !strings.Contains(prompt, "ll that is in it is yours") || strings.Contains(prompt, "not in the working directory") {
		t.Errorf("it was told:\n%s", prompt)
	}
}

// In the checkout itself, nothing is missing.
func TestContinueInTheCheckout(t *testing.T) {
	t.Parallel()
	a := &worker{script: "echo half > half.txt; echo x > x.log", answer: answer, err: agent.Fail(forge.FailTimeout, "it took too long")}
	w := smallWorld(t, a)
	fails(t, w.implement(goal(1)), forge.FailTimeout, "too long")
	a.script, a.err = "test -e half.txt; test -e x.log; git add -A; git commit -qm two", nil
	c := goal(1)
	c.Attempt.Number = 2
	forge.As[*forge.ImplementInput](c.Input).Continue = true
	if im := w.implemented(c); im.Commits != 1 {
		t.Errorf("got %+v", im)
	}
	allIsThere(t, a.prompt)
}
