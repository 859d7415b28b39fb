package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

// A task from its checkout to the branch, with main moving and a person's files following.
func TestJourney(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := newRepo(t, map[string]string{"a.txt": "1\n2\n3\n", "dir/b.txt": "b\n"})
	s := r.store()
	p := newPool(t, s)
	base := r.head("main")

	c, agent := prepare(t, p, "intent-001", base)
	if got := agent.git("status", "--porcelain", "-b"); got != "## forge/intent-001" {
		t.Fatalf("status in a fresh checkout: %q", got)
	}
	if err := c.WriteFile("task.yaml", []byte("id: intent-001\n")); err != nil {
		t.Fatal(err)
	}
	agent.write("a.txt", "1\n2\nthree\n")
	agent.git("commit", "-qam", "three")
	agent.write("new.txt", "left behind\n")

	got, err := c.Collect(ctx, attempt("intent-001"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Commits != 1 || len(got.Changes) != 1 || got.Changes[0].Path != "a.txt" || got.Leftover == "" {
		t.Fatalf("collected %+v", got)
	}
	if files := r.git("show", "--name-only", "--format=", string(got.Leftover)); files != "new.txt" {
		t.Fatalf("leftover holds %q", files)
	}
	if ref := r.head(got.Ref); ref != got.Head {
		t.Fatalf("%s is %s", got.Ref, ref)
	}

	onto := r.commit("a person's", map[string]string{"c.txt": "c\n"})
	rebased, err := s.Rebase(ctx, base, got.Head, onto)
	if err != nil {
		t.Fatal(err)
	}
	id, err := s.PatchID(ctx, base, got.Head)
	if err != nil || id != rebased.PatchID {
		t.Fatalf("patch id %s (%v), rebased %s", id, err, rebased.PatchID)
	}
	done, err := s.Merge(ctx, "main", onto, rebased.Head)
	if err != nil || done.AlreadyMerged || done.WorkTree != r.dir {
		t.Fatalf("merge: %+v, %v", done, err)
	}
	if r.head("main") != rebased.Head || r.read("a.txt") != "1\n2\nthree\n" || r.git("status", "--porcelain") != "" {
		t.Fatalf("the person's files did not follow: %s", r.git("status", "--porcelain"))
	}
	again, err := s.Merge(ctx, "main", onto, rebased.Head)
	if err != nil || !again.AlreadyMerged {
		t.Fatalf("merge again: %+v, %v", again, err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	warm, agent := prepare(t, p, "intent-002", rebased.Head)
	if out := agent.git("status", "--porcelain", "--ignored"); out != "" {
		t.Fatalf("warm checkout is not clean: %s", out)
	}
	if _, err := os.Stat(filepath.Join(warm.Dir(), ".forge")); err == nil {
		t.Fatal("the last task's file survived")
	}
	if out := r.git("fsck", "--strict"); strings.Contains(out, "error") {
		t.Fatal(out)
	}
	if err := s.Sweep(ctx, "intent"); err != nil {
		t.Fatal(err)
	}
	if refs := r.git("for-each-ref", "refs/forge/"); refs != "" {
		t.Fatal(refs)
	}
}

var _ = git.ErrMoved
