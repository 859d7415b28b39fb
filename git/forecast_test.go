package git_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

const sevenLines = "1\n2\n3\n4\n5\n6\n7\n"

func TestForecast(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": sevenLines, "b": sevenLines, "dir/c": sevenLines})
	s := r.store()
	first := r.head("main")
	on := func(base git.OID, files map[string]string) git.OID {
		r.git("checkout", "-q", "--detach", string(base))
		return r.commit("change", files)
	}
	landed := on(first, map[string]string{"b": "landed\n"})
	mine := on(landed, map[string]string{"a": strings.Replace(sevenLines, "1", "mine", 1), "new": "mine\n"})
	r.git("checkout", "-q", "--detach", string(landed))
	r.git("merge", "-q", "--no-ff", "-m", "merge", string(on(first, map[string]string{"other": "x\n"})), string(landed))
	merged := r.head("HEAD")
	for name, tt := range map[string]struct {
		other git.OID
		files []string
	}{
		"itself":                         {other: mine},
		"the base":                       {other: landed},
		"landed long ago":                {other: first},
		"other files":                    {other: on(landed, map[string]string{"dir/c": "x\n"})},
		"other lines":                    {other: on(landed, map[string]string{"a": strings.Replace(sevenLines, "7", "theirs", 1)})},
		"the same line":                  {on(landed, map[string]string{"a": strings.Replace(sevenLines, "1", "theirs", 1)}), []string{"a"}},
		"the same new file":              {on(landed, map[string]string{"new": "theirs\n"}), []string{"new"}},
		"deleted":                        {on(landed, map[string]string{"a": ""}), []string{"a"}},
		"renamed":                        {other: on(landed, map[string]string{"a": "", "dir/a": sevenLines})},
		"renamed and changed":            {on(landed, map[string]string{"a": "", "dir/a": strings.Replace(sevenLines, "1", "theirs", 1)}), []string{"dir/a"}},
		"two commits":                    {on(on(landed, map[string]string{"x": "x\n"}), map[string]string{"new": "theirs\n"}), []string{"new"}},
		"behind":                         {other: on(first, map[string]string{"dir/c": "x\n"})},
		"behind, the same line":          {on(first, map[string]string{"a": strings.Replace(sevenLines, "1", "theirs", 1)}), []string{"a"}},
		"behind, not its business":       {other: on(first, map[string]string{"b": "theirs\n"})},
		"behind, and the same line":      {on(first, map[string]string{"b": "theirs\n", "new": "theirs\n"}), []string{"new"}},
		"after a merge":                  {other: on(merged, map[string]string{"x": "x\n"})},
		"after a merge, the same line":   {on(merged, map[string]string{"new": "theirs\n"}), []string{"new"}},
		"a commit that is not here":      {other: "0123456789012345678901234567890123456789"},
		"a history that has no business": {other: oid(t, r.git("commit-tree", "-m", "root", string(first)+"^{tree}"))},
	} {
		got, err := s.Overlaps(t.Context(), landed, mine, []objects.TaskHead{{Task: "t", Commit: tt.other}})
		var want []objects.Overlap
		if tt.files != nil {
			want = []objects.Overlap{{Task: "t", Files: tt.files}}
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	clash := on(landed, map[string]string{"new": "theirs\n"})
	tasks := []objects.TaskHead{{Task: "x", Commit: clash}, {Task: "y", Commit: landed}, {Task: "z", Commit: clash}}
	before := r.git("count-objects", "-v")
	got, err := s.Overlaps(t.Context(), landed, mine, tasks)
	if after := r.git("count-objects", "-v"); after != before {
		t.Errorf("it leaves objects:\n%s\nand there were\n%s", after, before)
	}
	if err != nil || len(got) != 2 || got[0].Task != "x" || got[1].Task != "z" {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Overlaps(ctx, landed, mine, tasks); err == nil {
		t.Error("it does not stop")
	}
}

// What Forecast says of two branches is what git merge says of them.
func TestForecastEqualsGit(t *testing.T) {
	testsize.Checks(t, 8, 20)
	r := newRepo(t, map[string]string{"x": "x\n"})
	s := r.store()
	rapid.Check(t, func(rt *rapid.T) {
		base := drawBase(rt)
		r.fastImport(base, drawLine(rt, "ours", base.trees[0]), drawLine(rt, "theirs", base.trees[0]))
		got, err := s.Overlaps(t.Context(), r.head("base"), r.head("ours"), []objects.TaskHead{{Task: "t", Commit: r.head("theirs")}})
		if err != nil {
			rt.Fatal(err)
		}
		var files []string
		if out, err := r.try("merge-tree", "--write-tree", "--name-only", "--no-messages", "ours", "theirs"); err != nil {
			files = slices.Compact(slices.Sorted(slices.Values(strings.Split(out, "\n")[1:])))
		}
		if len(got) == 0 && files == nil {
			return
		}
		if len(got) != 1 || !slices.Equal(got[0].Files, files) {
			rt.Fatalf("got %+v, git says %q", got, files)
		}
	})
}

// BenchmarkForecast compares a change with those of eight tasks that began ten commits
// ago, in 20,000 files: "apart" they are in other files, "together" in the same one.
func BenchmarkForecast(b *testing.B) {
	r, main, later := bigRepo(b)
	s := r.store()
	tree := r.at(filepath.Join(b.TempDir(), "tree"))
	r.git("worktree", "add", "-q", "--detach", tree.dir, string(main))
	on := func(base git.OID, file, content string) git.OID {
		tree.git("checkout", "-q", "-f", "--detach", string(base))
		return tree.commit("work", map[string]string{file: content})
	}
	const file = "pkg150/sub3/file15003.go"
	head := on(later, file, "package p\n\nvar work = 0\n")
	for name, of := range map[string]func(n int) string{
		"apart":    func(n int) string { return fmt.Sprintf("pkg15%d/new.go", n) },
		"together": func(int) string { return file },
	} {
		b.Run(name, func(b *testing.B) {
			var tasks []objects.TaskHead
			for n := range 8 {
				tasks = append(tasks, objects.TaskHead{Task: "t", Commit: on(main, of(n), fmt.Sprintf("package p\n\nvar work = %d\n", n+1))})
			}
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				clashes, err := s.Overlaps(b.Context(), later, head, tasks)
				if err != nil || len(clashes) > 0 != (name == "together") {
					b.Fatal(clashes, err)
				}
				took = append(took, time.Since(start))
			}
			b.ReportMetric(median(took), "ms")
		})
	}
}
