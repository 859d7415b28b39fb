package e2e

import (
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	mergesRepo = flag.String("merges.repo", "", "the Go repository, bare or not, on whose files BenchmarkMerges works; without it, a small module")
	merges     = flag.Int("merges.changes", 6, "how many changes BenchmarkMerges has merged in each way")
)

// BenchmarkMerges reports how many changes are merged in a minute in a Go repository
// with `go test ./...` as verify and four workers, from the start of a run to its
// end: one after the other, and in the other ways of the merge queue, of which train
// is the default. Each change is a line of a file of its own, by a recipe. No result
// of a test is cached between two verifies: they run in folders of their own.
func BenchmarkMerges(b *testing.B) {
	files := goModule()
	if *mergesRepo != "" {
		files = filesOf(b, *mergesRepo)
	}
	var sources []string
	for name := range files {
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			sources = append(sources, name)
		}
	}
	slices.Sort(sources)
	if len(sources) < *merges {
		b.Fatalf("%d changes of files of their own, and there are %d files", *merges, len(sources))
	}
	for b.Loop() {
		for _, way := range ways {
			files["pfl-forge.yaml"] = fmt.Sprintf("parallel_workers: 4\nmerge_queue: {%s}\nverify: [go test ./...]\n"+
				"recipes:\n  line:\n    run: echo '// A line more.' >>\"$FILE\"\n    params: [{name: FILE}]\n", way.queue)
			r := newRepo(b, files, unconfined)
			for i, name := range sources[:*merges] {
				r.must(0, "create", fmt.Sprintf("line-%02d", i), "--title", fmt.Sprintf("Line %d", i), "--recipe", "line", "--with", "FILE="+name)
			}
			before, began := len(r.subjects()), time.Now()
			r.must(0, "run")
			took := time.Since(began)
			if got := len(r.subjects()) - before; got != *merges {
				b.Fatalf("%s: %d merged, want %d", way.name, got, *merges)
			}
			b.ReportMetric(float64(*merges)/took.Minutes(), way.name+"/min")
		}
	}
}

// goModule returns the files of a module with eight packages, each with a test.
func goModule() map[string]string {
	files := map[string]string{"go.mod": "module example.com/m\n\ngo 1.24\n"}
	for i := range 8 {
		name := fmt.Sprintf("p%d", i)
		files[name+"/p.go"] = "// Package " + name + " counts.\npackage " + name + "\n\n// Next counts.\nfunc Next(n int) int { return n + 1 }\n"
		files[name+"/p_test.go"] = "package " + name + "\n\nimport \"testing\"\n\n" +
			"func TestNext(t *testing.T) {\n\tif Next(1) != 2 {\n\t\tt.Fail()\n\t}\n}\n"
	}
	return files
}

// filesOf returns the regular files of a repository's last commit.
func filesOf(b *testing.B, repository string) map[string]string {
	b.Helper()
	git := func(args ...string) string {
		out, err := exec.CommandContext(b.Context(), "git", append([]string{"-C", repository}, args...)...).Output()
		if err != nil {
			b.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	files := map[string]string{}
	for line := range strings.Lines(git("ls-tree", "-r", "HEAD")) {
		kind, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if strings.HasPrefix(kind, "100") {
			files[filepath.FromSlash(name)] = git("show", "HEAD:"+name)
		}
	}
	return files
}
