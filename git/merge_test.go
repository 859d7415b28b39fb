package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// proposal makes a commit on top of main that no branch has.
func (r repo) proposal(files map[string]string) git.OID {
	r.t.Helper()
	work := r.at(filepath.Join(r.t.TempDir(), "work"))
	r.git("worktree", "add", "-q", "--detach", work.dir, "main")
	o := work.commit("proposal", files)
	r.git("worktree", "remove", "--force", work.dir)
	return o
}

func TestMergeKeepsUncommittedWork(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a": "a\n", "b": "b\n", "dir/c": "c\n"}
	many := map[string]string{"a": "new\n"}
	for i := range 300 { // more than are named to git one by one
		many[fmt.Sprintf("many/%d", i)] = "m\n"
	}
	for _, tc := range []struct {
		name    string
		change  map[string]string
		do      func(r repo)
		overlap []string // empty: it goes through
	}{
		{"clean", map[string]string{"a": "new\n", "b": "", "d/e": "e\n"}, func(repo) {}, nil},
		{"edit elsewhere", map[string]string{"a": "new\n"}, func(r repo) { r.write("b", "mine\n") }, nil},
		{"staged elsewhere", map[string]string{"a": "new\n"}, func(r repo) { r.write("b", "mine\n"); r.git("add", "b") }, nil},
		{"untracked elsewhere", map[string]string{"a": "new\n"}, func(r repo) { r.write("u", "mine\n") }, nil},
		{"touched only", map[string]string{"a": "new\n"}, func(r repo) {
			if err := os.Chtimes(filepath.Join(r.dir, "a"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"same change staged", map[string]string{"a": "new\n"}, func(r repo) { r.write("a", "new\n"); r.git("add", "a") }, nil},
		{"edit", map[string]string{"a": "new\n"}, func(r repo) { r.write("a", "mine\n") }, []string{"a"}},
		{"staged", map[string]string{"a": "new\n", "b": "new\n"}, func(r repo) {
			r.write("a", "mine\n")
			r.git("add", "a")
			r.write("b", "mine\n")
		}, []string{"a", "b"}},
		{"staged new file", map[string]string{"n": "new\n"}, func(r repo) { r.write("n", "mine\n"); r.git("add", "n") }, []string{"n"}},
		{"untracked", map[string]string{"n": "new\n"}, func(r repo) { r.write("n", "mine\n") }, []string{"n"}},
		{"untracked directory", map[string]string{"n": "new\n"}, func(r repo) { r.write("n/mine", "mine\n") }, []string{"n/mine"}},
		{"untracked file for a directory", map[string]string{"n/o": "new\n"}, func(r repo) { r.write("n", "mine\n") }, []string{"n"}},
		{"ignored", map[string]string{"n.log": "new\n"}, func(r repo) {
			r.write(".git/info/exclude", "*.log\n")
			r.write("n.log", "mine\n")
		}, []string{"n.log"}},
		{"edit beside many", many, func(r repo) { r.write("b", "mine\n") }, nil},
		{"edit of one of many", many, func(r repo) { r.write("a", "mine\n") }, []string{"a"}},
		{"edit of a deleted file", map[string]string{"a": ""}, func(r repo) { r.write("a", "mine\n") }, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRepo(t, files)
			old, next := r.head("main"), r.proposal(tc.change)
			tc.do(r)
			before := r.git("status", "--porcelain", "-uall") + r.git("diff") + r.git("diff", "--cached")
			_, err := r.store().Merge(t.Context(), "main", old, next)
			if tc.overlap != nil {
				var o *git.UncommittedError
				if !errors.As(err, &o) || !slices.Equal(o.Files, tc.overlap) || r.head("main") != old {
					t.Fatalf("error %v, main moved: %v", err, r.head("main") != old)
				}
			} else if err != nil || r.head("main") != next {
				t.Fatalf("main %s, want %s: %v", r.head("main"), next, err)
			}
			after := r.git("status", "--porcelain", "-uall") + r.git("diff") + r.git("diff", "--cached")
			if tc.name != "same change staged" && before != after {
				t.Fatalf("the person's work changed:\n%s\nwas:\n%s", after, before)
			}
			r.noLocks()
		})
	}
}

// noLocks makes sure that nothing of ours is left in the git directory.
func (r repo) noLocks() {
	r.t.Helper()
	err := filepath.WalkDir(filepath.Join(r.dir, ".git"), func(p string, _ os.DirEntry, err error) error {
		name := filepath.Base(p)
		if strings.HasSuffix(name, ".lock") || name == "index.pfl-forge" || name == "move.json" {
			r.t.Errorf("left behind: %s", p)
		}
		return err
	})
	if err != nil {
		r.t.Error(err)
	}
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s := r.store()
	ctx := t.Context()
	old, next := r.head("main"), r.proposal(map[string]string{"a": "b\n"})
	side := r.proposal(map[string]string{"a": "side\n"})

	if _, err := s.Merge(ctx, "none", old, next); !errors.Is(err, git.ErrNoBranch) {
		t.Error(err)
	}
	var w *git.WorkError
	if _, err := s.Merge(ctx, "main", side, next); !errors.As(err, &w) || w.Fault != git.Rewritten {
		t.Error(err)
	}
	moved := r.commit("a person's", map[string]string{"p": "p\n"})
	if _, err := s.Merge(ctx, "main", old, next); !errors.Is(err, git.ErrMoved) || r.head("main") != moved {
		t.Error(err)
	}
	r.git("checkout", "-q", "-b", "topic", string(side))
	if out, err := r.try("rebase", "main"); err != nil {
		t.Fatal(out)
	}
	r.commit("conflict", map[string]string{"p": "q\n"})
	r.git("checkout", "-q", "main")
	r.commit("other", map[string]string{"p": "r\n"})
	if _, err := r.try("rebase", "topic"); err == nil {
		t.Fatal("want a conflict")
	}
	if _, err := s.Inspect(ctx, "main"); !errors.Is(err, git.ErrInProgress) {
		t.Error(err)
	}
	head := r.head("main")
	onto, err := s.Rebase(ctx, old, next, head)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Merge(ctx, "main", head, onto.Head); !errors.Is(err, git.ErrInProgress) || r.head("main") != head {
		t.Error(err)
	}
	r.noLocks()
}

func TestMergeElsewhere(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s := r.store()
	old, next := r.head("main"), r.proposal(map[string]string{"a": "b\n"})
	r.git("checkout", "-q", "-b", "topic")
	r.write("a", "mine\n")
	if res, err := s.Merge(t.Context(), "main", old, next); err != nil || res.WorkTree != "" || r.read("a") != "mine\n" {
		t.Fatalf("a branch that is not checked out: %+v, %v", res, err)
	}
	linked := r.at(filepath.Join(t.TempDir(), "linked"))
	r.git("worktree", "add", "-q", linked.dir, "main")
	third := linked.at(linked.dir).proposal(map[string]string{"a": "c\n"})
	res, err := s.Merge(t.Context(), "main", next, third)
	if err != nil || res.WorkTree != linked.dir || linked.read("a") != "c\n" || linked.git("status", "--porcelain") != "" {
		t.Fatalf("a linked working tree: %+v, %v", res, err)
	}
	if r.read("a") != "mine\n" {
		t.Fatal("the main working tree changed")
	}
}

func TestMergeWaitsForAPersonsLock(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s := r.store()
	old, next := r.head("main"), r.proposal(map[string]string{"a": "b\n"})
	lock := filepath.Join(r.dir, ".git", "index.lock")
	r.write(".git/index.lock", "")
	patience := 50 * time.Millisecond
	wait.Until(t, "a merge meets the lock before its time is over", func() bool {
		_, err := s.Merge(wait.Briefly(t, patience), "main", old, next)
		if err == nil || r.head("main") != old {
			t.Fatalf("%v, main is at %s", err, r.head("main"))
		}
		patience *= 2
		return errors.Is(err, git.ErrBusy)
	})
	if _, err := os.Stat(lock); err != nil {
		t.Fatal("a person's lock was removed")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Merge(t.Context(), "main", old, next); err != nil {
			t.Error(err)
		}
	})
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if r.head("main") != next {
		t.Fatal("not merged")
	}
}

// People commit while merges go on: every commit of either is on main in the
// end, and the files are clean.
func TestMergeAgainstAPerson(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	s := r.store()
	ctx := t.Context()
	const each = 15
	base := r.head("main")
	next := r.proposal(map[string]string{"ours": "0\n"})
	done := make(chan []string, 1)
	go func() {
		var messages []string
		for i := 0; len(messages) < each && i < 100*each; i++ {
			msg := "person " + string(rune('a'+len(messages)))
			if _, err := r.try("commit", "-q", "--allow-empty", "-m", msg); err == nil {
				messages = append(messages, msg)
			}
		}
		done <- messages
	}()
	for n := 0; n < each; {
		head, err := s.Head(ctx, "main")
		if err != nil {
			t.Fatal(err)
		}
		onto, err := s.Rebase(ctx, base, next, head)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Merge(ctx, "main", head, onto.Head)
		if errors.Is(err, git.ErrMoved) || errors.Is(err, git.ErrBusy) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		base, next = onto.Head, commitOn(t, s, onto.Head, n)
	}
	messages := <-done
	log := r.git("log", "--format=%s", "--first-parent", "main")
	for _, m := range messages {
		if strings.Count("\n"+log+"\n", "\n"+m+"\n") != 1 {
			t.Errorf("lost or doubled: %q", m)
		}
	}
	if n := strings.Count(log, "change of main"); n != each-1 || len(messages) != each {
		t.Errorf("%d of ours and %d of theirs:\n%s", n, len(messages), log)
	}
	if st := r.git("status", "--porcelain"); st != "" {
		t.Error(st)
	}
	r.noLocks()
}

// commitOn makes another commit of ours, through a checkout.
func commitOn(t *testing.T, s *store.Store, at git.OID, n int) git.OID {
	t.Helper()
	p, err := checkout.NewPool(t.Context(), checkout.PoolConfig{Dir: filepath.Join(t.TempDir(), "w"), Store: s})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { must(t, p.Close()) }()
	c, agent := prepare(t, p, "t", at)
	agent.write("ours", strings.Repeat("x\n", n))
	o, err := c.CommitAll(t.Context(), "change of main", git.Identity{Name: "Recipe", Email: "r@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	return o
}
