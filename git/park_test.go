package git_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// treesOf lists the working trees of a pool by their inodes.
func treesOf(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"[^.]*", ".warm/*"} {
		list, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		for _, path := range list {
			found = append(found, inodeOf(t, path))
		}
	}
	slices.Sort(found)
	return found
}

// park does a task's work, collects it, and gives the checkout back.
func park(t *testing.T, p *checkout.Pool, task string, at git.OID) git.OID {
	t.Helper()
	c, agent := prepare(t, p, task, at)
	agent.write("a", task+"\n")
	agent.git("commit", "-qam", "work of "+task)
	agent.write("cache/x", task+"\n")
	got, err := c.Collect(t.Context(), attempt(task))
	must(t, err)
	must(t, c.Park())
	return got.Head
}

// Tasks whose commits were collected wait for what follows without keeping their
// trees: however many they are, no more are written than the pool may keep.
func TestCollectedTasksShareTrees(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", ".gitignore": "cache/\n"})
	dir := filepath.Join(t.TempDir(), "w")
	p := poolWith(t, r.store(), checkout.PoolConfig{Dir: dir, Max: 2})
	var first []string
	heads := map[string]git.OID{}
	for i := range 6 {
		task := fmt.Sprintf("t%d", i)
		heads[task] = park(t, p, task, r.head("main"))
		if got := treesOf(t, dir); i == 1 {
			first = got
		} else if i > 1 && !slices.Equal(got, first) {
			t.Fatalf("after task %d there are trees %q, want %q", i, got, first)
		}
	}
	if _, err := p.Reopen("t0", heads["t0"]); !errors.Is(err, git.ErrMissing) {
		t.Errorf("its tree is another task's: %v", err)
	}
	if _, err := p.Recover("t0"); !errors.Is(err, git.ErrMissing) {
		t.Errorf("its tree is another task's: %v", err)
	}
	c, err := p.Reopen("t5", heads["t5"])
	must(t, err)
	if r.at(c.Dir()).read("cache/x") != "t5\n" {
		t.Error("the ignored files of the task that was parked last are gone")
	}
	// It is in use now, so the other one is taken.
	park(t, p, "t6", r.head("main"))
	if _, err := p.Reopen("t4", heads["t4"]); !errors.Is(err, git.ErrMissing) || r.at(c.Dir()).read("cache/x") != "t5\n" {
		t.Errorf("the wrong tree was taken: %v", err)
	}
	if got := treesOf(t, dir); !slices.Equal(got, first) {
		t.Errorf("there are trees %q, want %q", got, first)
	}
}

// What is in use is never taken: then there are more trees for a while.
func TestPoolGoesBeyondItsBound(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	dir := filepath.Join(t.TempDir(), "w")
	p := poolWith(t, r.store(), checkout.PoolConfig{Dir: dir, Max: 2})
	var used []*checkout.Checkout
	for i := range 4 {
		c, _ := prepare(t, p, fmt.Sprintf("t%d", i), r.head("main"))
		used = append(used, c)
	}
	must(t, used[0].Park())
	must(t, used[1].Release())
	if got := treesOf(t, dir); len(got) != 2 {
		t.Errorf("%d trees, want the two that are in use", len(got))
	}
	must(t, used[2].Park())
	must(t, used[3].Release())
	if got := treesOf(t, dir); len(got) != 2 {
		t.Errorf("%d trees, want 2", len(got))
	}
}

// TestViewsWaitForATree: while tasks have all trees but one, those who read in turn share that,
// however many they are. A task waits for none of them, and neither does the only one, nor who
// reads for long; and nobody waits for such a one.
func TestViewsWaitForATree(t *testing.T) {
	r := newRepo(t, map[string]string{"a": "a\n"})
	dir := filepath.Join(t.TempDir(), "w")
	p := poolWith(t, r.store(), checkout.PoolConfig{Dir: dir, Max: 2})
	ctx, main := wait.Context(t), r.head("main")
	task, _ := prepare(t, p, "t0", main)
	var mu sync.Mutex
	trees := map[string]bool{}
	var readers sync.WaitGroup
	for i := range 5 {
		readers.Go(func() {
			for range 4 {
				v, err := p.ViewInTurn(ctx, git.Name(fmt.Sprintf("v%d", i)), main)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				trees[inodeOf(t, v.Dir())] = true
				mu.Unlock()
				if err := v.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	if len(trees) != 1 || len(treesOf(t, dir)) != 2 {
		t.Errorf("%d trees were read, and there are %d", len(trees), len(treesOf(t, dir)))
	}
	other, _ := prepare(t, p, "t1", main)
	agent, err := p.View(ctx, "agent", main)
	must(t, err)
	v, err := p.ViewInTurn(ctx, "v", main)
	must(t, err)
	review, err := p.View(ctx, "review", main)
	must(t, err)
	third, _ := prepare(t, p, "t2", main)
	gone, cancel := context.WithCancel(ctx)
	waits := make(chan error, 1)
	go func() {
		_, err := p.ViewInTurn(gone, "w", main)
		waits <- err
	}()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("who is cancelled has %v", err)
	}
	for _, c := range []*checkout.Checkout{task, other, agent, v, review, third} {
		must(t, c.Release())
	}
	if got := treesOf(t, dir); len(got) != 2 {
		t.Errorf("%d trees are left", len(got))
	}
}

// TestHalfOfThePoolIsForTurns: where more tasks have trees than the pool keeps, as many read in turn
// at once all the same as half of that.
func TestHalfOfThePoolIsForTurns(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	p := poolWith(t, r.store(), checkout.PoolConfig{Max: 4})
	ctx, main := wait.Context(t), r.head("main")
	for i := range 5 {
		prepare(t, p, fmt.Sprintf("t%d", i), main)
	}
	for _, name := range []git.Name{"v0", "v1"} {
		_, err := p.ViewInTurn(ctx, name, main)
		must(t, err)
	}
}

// TestFailedViewLeavesNothing: of a checkout for reading that could not be made nothing is left on
// the disk, and nobody waits for it to be given back.
func TestFailedViewLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	dir := filepath.Join(t.TempDir(), "w")
	p := poolWith(t, r.store(), checkout.PoolConfig{Dir: dir, Max: 2})
	ctx, main := wait.Context(t), r.head("main")
	broken := r.commit("broken", map[string]string{"b": "b\n"})
	blob := r.git("rev-parse", string(broken)+":b")
	must(t, os.Remove(filepath.Join(r.dir, ".git", "objects", blob[:2], blob[2:])))
	if _, err := p.ViewInTurn(ctx, "v0", broken); err == nil {
		t.Fatal("a file was written whose content is missing")
	}
	if got := treesOf(t, dir); len(got) > 0 {
		t.Errorf("%d trees are left", len(got))
	}
	for _, name := range []git.Name{"v1", "v2"} {
		if _, err := p.ViewInTurn(ctx, name, main); err != nil {
			t.Fatal(err)
		}
	}
}

// What is parked stays so in the next pool, and what was not is not taken there.
func TestParkedStays(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", ".gitignore": "cache/\n"})
	dir, base := filepath.Join(t.TempDir(), "w"), r.head("main")
	cfg := checkout.PoolConfig{Dir: dir, Max: 3}
	p := poolWith(t, r.store(), cfg)
	old, again := park(t, p, "old", base), park(t, p, "again", base)
	c, agent := prepare(t, p, "cut-off", base)
	agent.write("a", "not saved\n")
	_, err := p.Reopen("again", again)
	must(t, err)
	must(t, p.Close())

	p = poolWith(t, r.store(), cfg)
	prepare(t, p, "next", base)
	if _, err := p.Reopen("old", old); !errors.Is(err, git.ErrMissing) {
		t.Errorf("the parked one was not taken: %v", err)
	}
	prepare(t, p, "last", base)
	if _, err := p.Reopen("again", again); err != nil || r.at(c.Dir()).read("a") != "not saved\n" {
		t.Errorf("one that was in use was taken: %v", err)
	}
	must(t, p.Close())

	// With a smaller bound, those go that nobody uses.
	p = poolWith(t, r.store(), checkout.PoolConfig{Dir: dir, Max: 1})
	if got := entries(t, dir); !slices.Equal(got, []string{"again", "cut-off", "last", "next"}) {
		t.Errorf("checkouts %q", got)
	}
	c, err = p.Recover("next")
	must(t, err)
	must(t, c.Park())
	if exists(filepath.Join(dir, "next")) {
		t.Error("there is one more than the pool may keep")
	}
}

// A task either gets its parked checkout as it was, or not at all.
func TestParkedIsTakenOrReopened(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n", ".gitignore": "cache/\n"})
	base := r.head("main")
	p := poolWith(t, r.store(), checkout.PoolConfig{Max: 1})
	for i := range 10 {
		task := fmt.Sprintf("t%d", i)
		head := park(t, p, task, base)
		var wg sync.WaitGroup
		wg.Go(func() {
			c, err := p.Reopen(git.Name(task), head)
			if errors.Is(err, git.ErrMissing) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := os.ReadFile(filepath.Join(c.Dir(), "cache/x")); string(got) != task+"\n" {
				t.Errorf("half of a checkout: %q, %v", got, err)
			}
			if err := c.Release(); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			c, err := p.Prepare(t.Context(), "other", base)
			if err != nil {
				t.Error(err)
				return
			}
			if r.at(c.Dir()).git("status", "--porcelain", "--ignored") != "" {
				t.Error("not clean")
			}
			if err := c.Release(); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	}
}
