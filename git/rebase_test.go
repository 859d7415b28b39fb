package git_test

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"pgregory.net/rapid"
)

// Whatever git rebase makes of a branch, Rebase makes the same tree in as many
// commits, or finds a conflict too.
func TestRebaseEqualsGit(t *testing.T) {
	testsize.Checks(t, 8, 30)
	r := newRepo(t, map[string]string{"x": "x\n"})
	s := r.store()
	r.git("worktree", "add", "-q", "--detach", "../work")
	work := r.at(r.dir + "/../work")
	rapid.Check(t, func(rt *rapid.T) {
		base := drawBase(rt)
		r.fastImport(base, drawLine(rt, "ours", base.trees[0]), drawLine(rt, "theirs", base.trees[0]))
		b, head, onto := r.head("base"), r.head("ours"), r.head("theirs")

		got, err := s.Rebase(t.Context(), b, head, onto)
		want, conflict := r.realRebase(work)
		var c *git.ConflictError
		switch {
		case conflict != nil && errors.As(err, &c):
			if !slices.Equal(c.Files, conflict) {
				rt.Fatalf("conflicts in %q, git says %q", c.Files, conflict)
			}
		case conflict != nil || err != nil:
			rt.Fatalf("got %+v, %v; git conflicts in %q", got, err, conflict)
		case string(got.Tree) != r.git("rev-parse", string(want)+"^{tree}"):
			rt.Fatalf("trees differ:\n%s", r.git("diff", string(want), string(got.Head)))
		case fmt.Sprint(got.Commits) != r.git("rev-list", "--count", "theirs.."+string(want)):
			rt.Fatalf("%d commits, git makes %s", got.Commits, r.git("log", "--oneline", "theirs.."+string(want)))
		}
		if again, err2 := s.Rebase(t.Context(), b, head, onto); err == nil && (err2 != nil || again != got) {
			rt.Fatalf("the second time: %+v, %v; the first: %+v", again, err2, got)
		}
	})
}

// line is a branch to make: a tree (path to content) for each commit.
type line struct {
	branch string
	trees  []map[string]string
}

func drawBase(rt *rapid.T) line {
	tree := map[string]string{}
	for i := range rapid.IntRange(1, 3).Draw(rt, "files") {
		var b strings.Builder
		for n := range rapid.IntRange(4, 12).Draw(rt, "lines") {
			fmt.Fprintf(&b, "file %d line %d\n", i, n)
		}
		tree[fmt.Sprintf("dir%d/file", i)] = b.String()
	}
	return line{branch: "base", trees: []map[string]string{tree}}
}

// drawLine makes commits that change, add, remove and move lines and files of the tree before.
func drawLine(rt *rapid.T, branch string, tree map[string]string) line {
	l := line{branch: branch}
	for range rapid.IntRange(1, 3).Draw(rt, branch+" commits") {
		tree = edit(rt, tree)
		l.trees = append(l.trees, tree)
	}
	return l
}

func edit(rt *rapid.T, from map[string]string) map[string]string {
	tree := maps.Clone(from)
	paths := slices.Sorted(maps.Keys(tree))
	if len(paths) == 0 {
		tree["again"] = "again\n"
		return tree
	}
	p := rapid.SampledFrom(paths).Draw(rt, "path")
	lines := strings.SplitAfter(tree[p], "\n")
	at := rapid.IntRange(0, max(0, len(lines)-2)).Draw(rt, "line")
	word := rapid.SampledFrom([]string{"red\n", "green\n", "blue\n"}).Draw(rt, "word")
	switch rapid.SampledFrom([]string{"change", "change", "insert", "insert", "drop", "create", "delete", "move", "nothing"}).Draw(rt, "edit") {
	case "change":
		lines[at] = word
		tree[p] = strings.Join(lines, "")
	case "insert":
		tree[p] = strings.Join(slices.Insert(lines, at, word), "")
	case "drop":
		tree[p] = strings.Join(slices.Delete(lines, at, at+1), "")
	case "create":
		tree["new/"+strings.TrimSpace(word)] = word + rapid.SampledFrom([]string{"", "more\n"}).Draw(rt, "more")
	case "delete":
		delete(tree, p)
	case "move":
		tree["moved/"+strings.ReplaceAll(p, "/", "-")] = tree[p]
		delete(tree, p)
	}
	return tree
}

// fastImport makes the branches with one git process.
func (r repo) fastImport(base line, lines ...line) {
	r.t.Helper()
	var b strings.Builder
	mark, clock := 0, 1_700_000_000
	write := func(l line, parent int) int {
		for i, tree := range l.trees {
			mark++
			clock++
			msg := fmt.Sprintf("%s %d\n\nbody\n", l.branch, i)
			fmt.Fprintf(&b, "commit refs/heads/%s\nmark :%d\nauthor An Author <author@example.org> %d +0200\n", l.branch, mark, clock)
			fmt.Fprintf(&b, "committer A Committer <c@example.org> %d +0000\ndata %d\n%s\n", clock, len(msg), msg)
			if parent > 0 {
				fmt.Fprintf(&b, "from :%d\n", parent)
			}
			b.WriteString("deleteall\n")
			for _, p := range slices.Sorted(maps.Keys(tree)) {
				fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", p, len(tree[p]), tree[p])
			}
			parent = mark
		}
		return parent
	}
	b.WriteString("feature force\n")
	root := write(base, 0)
	for _, l := range lines {
		write(l, root)
	}
	cmd := exec.Command("git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("fast-import: %v\n%s", err, out)
	}
}

// realRebase lets git do it and returns the head, or the conflicting files.
func (r repo) realRebase(work repo) (git.OID, []string) {
	r.t.Helper()
	work.git("checkout", "-q", "-f", "--detach", "ours")
	out, err := work.try("rebase", "-q", "--reapply-cherry-picks", "--onto", "theirs", "base")
	if err == nil {
		return work.head("HEAD"), nil
	}
	files := strings.Fields(work.git("diff", "--name-only", "--diff-filter=U"))
	if len(files) == 0 {
		r.t.Fatalf("git rebase: %s", out)
	}
	work.git("rebase", "--abort")
	return "", files
}

func TestRebaseFaults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := newRepo(t, map[string]string{"a": "1\n2\n3\n", "b": "b\n"})
	s := r.store()
	base := r.head("main")
	onto := r.commit("onto", map[string]string{"a": "one\n2\n3\n"})
	r.git("checkout", "-q", "-b", "topic", string(base))
	head := r.commit("work", map[string]string{"a": "uno\n2\n3\n"})

	var c *git.ConflictError
	if _, err := s.Rebase(ctx, base, head, onto); !errors.As(err, &c) || c.Commit != head || !slices.Equal(c.Files, []string{"a"}) {
		t.Errorf("conflict: %v", err)
	}
	same, err := s.Rebase(ctx, base, head, base)
	if err != nil || same.Head != head || same.Commits != 1 {
		t.Errorf("onto the base: %+v, %v", same, err)
	}
	empty, err := s.Rebase(ctx, base, base, onto)
	if err != nil || empty.Head != onto || empty.Commits != 0 {
		t.Errorf("nothing: %+v, %v", empty, err)
	}
	twice, err := s.Rebase(ctx, base, head, head)
	if err != nil || twice.Head != head || twice.Commits != 0 {
		t.Errorf("onto itself: %+v, %v", twice, err)
	}
	var w *git.WorkError
	if _, err := s.Rebase(ctx, onto, head, onto); !errors.As(err, &w) || w.Fault != git.Rewritten {
		t.Errorf("unrelated: %v", err)
	}
	merge := oid(t, r.git("commit-tree", "-m", "merge", "-p", string(head), "-p", string(onto), "HEAD^{tree}"))
	if _, err := s.Rebase(ctx, base, merge, onto); !errors.As(err, &w) || w.Fault != git.Merged {
		t.Errorf("merge: %v", err)
	}
	if _, err := s.Rebase(ctx, base, oid(t, strings.Repeat("1", 40)), onto); !errors.Is(err, git.ErrNotFound) {
		t.Errorf("missing: %v", err)
	}
}

// Author, date, message and an odd encoding survive; the committer is the
// service at the original time.
func TestRebaseKeepsTheCommit(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "a\n"})
	base := r.head("main")
	onto := r.commit("onto", map[string]string{"b": "b\n"})
	r.git("checkout", "-q", "-b", "topic", string(base))
	r.write("a", "c\n")
	r.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-qam", "caf\xe9\n\n  body \n", "--cleanup=verbatim", "--date=2001-02-03T04:05:06+0900",
		"--author=Ren\xe9 <rene@example.org>")
	got, err := r.store().Rebase(t.Context(), base, r.head("topic"), onto)
	if err != nil {
		t.Fatal(err)
	}
	const keep = "--format=%an %ae %ad %e %B"
	if was, is := r.git("log", "-1", keep, "topic"), r.git("log", "-1", keep, string(got.Head)); was != is {
		t.Errorf("%q became %q", was, is)
	}
	if c := r.git("log", "-1", "--format=%cn %ct", string(got.Head)); c != "pfl-forge "+r.git("log", "-1", "--format=%ct", "topic") {
		t.Error(c)
	}
	r.git("fsck", "--strict")
}

func TestPatchID(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n2\n3\n4\n5\n", "bin": "\x00one", "-- b": "x\n"})
	s := r.store()
	seen := map[string]string{}
	base := r.head("main")
	for name, files := range map[string]map[string]string{
		"text":        {"a": "1\n2\n3\n4\nfive\n"},
		"white space": {"a": "1\n2\n3\n4\n 5\n"},
		"binary":      {"bin": "\x00two"},
		"binary 2":    {"bin": "\x00three"},
		"new":         {"new": "n\n"},
		"odd name":    {"-- b": "index 1..2\n@@ -1 +1 @@\n"},
		"odd content": {"-- b": "index 3..4\n@@ -1 +1 @@\n"},
	} {
		r.git("checkout", "-q", "--detach", string(base))
		head := r.commit(name, files)
		id, err := s.PatchID(t.Context(), base, head)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s have the same patch id", name, other)
		}
		seen[id] = name
		r.git("checkout", "-q", "--detach", string(base))
		moved := r.commit("moved", map[string]string{"a": "0\n0\n0\n0\n1\n2\n3\n4\n5\n", "other": "o\n"})
		onto, err := s.Rebase(t.Context(), base, head, moved)
		if err != nil || onto.PatchID != id {
			t.Errorf("%s: rebased %v, %v", name, onto.PatchID == id, err)
		}
	}
}
