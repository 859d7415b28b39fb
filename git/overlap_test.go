package git_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"pgregory.net/rapid"
)

// Whatever a person has in their working tree, a merge either goes through and
// leaves all of it as it was, or is refused and changes nothing.
func TestMergeNeverTouchesAPersonsWork(t *testing.T) {
	testsize.Checks(t, 10, 40)
	r := newRepo(t, map[string]string{"x": "x\n"})
	r.write(".git/info/exclude", "ignored\n")
	s := r.store()
	went, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		old := drawTree(rt, nil)
		next := drawTree(rt, old)
		r.git("checkout", "-q", "-f", "--detach")
		r.fastImport(line{"base", []map[string]string{old}}, line{"next", []map[string]string{next}})
		r.git("checkout", "-q", "-f", "-B", "main", "base")
		r.git("clean", "-ffdxq")
		personEdits(rt, r)
		disk, index := r.disk(), r.git("ls-files", "-s")

		_, err := s.Merge(t.Context(), "main", r.head("base"), r.head("next"))
		after := r.disk()
		if _, overlap := errors.AsType[*git.UncommittedError](err); overlap {
			refused++
			if !maps.Equal(disk, after) || index != r.git("ls-files", "-s") || r.head("main") != r.head("base") {
				rt.Fatalf("refused (%v), but changed %v to %v", err, disk, after)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		went++
		for p, was := range disk {
			want := was
			if was == old[p] {
				want = next[p]
			}
			if after[p] != want {
				rt.Fatalf("%s: %q became %q, want %q", p, was, after[p], want)
			}
		}
		for p, is := range after {
			if disk[p] == "" && is != next[p] {
				rt.Fatalf("%s: came out of nothing: %q", p, is)
			}
		}
		r.stagedStays(rt, index)
	})
	t.Logf("%d went through, %d were refused", went, refused)
	r.noLocks()
}

var somePaths = []string{"a", "b", "d/x", "d/y", "d", "e/f/g", "e/f", "ignored"}

func drawTree(rt *rapid.T, from map[string]string) map[string]string {
	tree := maps.Clone(from)
	if tree == nil {
		tree = map[string]string{"keep": "keep\n"}
	}
	for range rapid.IntRange(1, 4).Draw(rt, "edits") {
		p := rapid.SampledFrom(somePaths).Draw(rt, "path")
		maps.DeleteFunc(tree, func(q, _ string) bool {
			return q == p || strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/")
		})
		if c := rapid.SampledFrom([]string{"1\n", "2\n", "3\n", ""}).Draw(rt, "content"); c != "" {
			tree[p] = c
		}
	}
	return tree
}

// personEdits writes, deletes and stages.
func personEdits(rt *rapid.T, r repo) {
	for range rapid.IntRange(0, 3).Draw(rt, "person's edits") {
		p := rapid.SampledFrom(somePaths).Draw(rt, "person's path")
		full := filepath.Join(r.dir, p)
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if info, err := os.Lstat(filepath.Join(r.dir, d)); err == nil && !info.IsDir() {
				must(r.t.(*testing.T), os.Remove(filepath.Join(r.dir, d)))
			}
		}
		must(r.t.(*testing.T), os.RemoveAll(full))
		if c := rapid.SampledFrom([]string{"1\n", "2\n", "mine\n", ""}).Draw(rt, "person's content"); c != "" {
			r.write(p, c)
		}
		if rapid.Bool().Draw(rt, "stage") {
			r.git("add", "-A", "-f", ".")
		}
	}
}

// disk is the content of every file of the working tree.
func (r repo) disk() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(r.dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(r.dir, p)
			all[rel] = r.read(rel)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// stagedStays makes sure that what the person had staged is staged still, or is in the new commit.
func (r repo) stagedStays(rt *rapid.T, before string) {
	base := strings.Split(r.git("ls-tree", "-r", "--format=%(objectmode) %(objectname) 0%x09%(path)", "base"), "\n")
	next := strings.Split(r.git("ls-tree", "-r", "--format=%(objectmode) %(objectname) 0%x09%(path)", "next"), "\n")
	now := strings.Split(r.git("ls-files", "-s"), "\n")
	for e := range strings.SplitSeq(before, "\n") {
		if !slices.Contains(base, e) && !slices.Contains(now, e) && !slices.Contains(next, e) {
			rt.Fatalf("no longer staged: %q", e)
		}
	}
}
