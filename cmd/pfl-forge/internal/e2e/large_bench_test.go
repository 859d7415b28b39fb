package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkLargeRepository reports what one more merged change costs on repositories of 1,000,
// 13,000 and 65,000 files, by a recipe that changes a line, with four workers: processor
// seconds and git processes, as the difference of a run with 16 changes and one with 4. cold-s
// are the seconds that a run with one change takes in a repository that was never worked in.
func BenchmarkLargeRepository(b *testing.B) {
	for _, files := range []int{1000, 13000, 65000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			for b.Loop() {
				r := largeRepository(b, files)
				cold := oneLiners(b, r, "cold", 1)
				oneLiners(b, r, "warm", 16) // writes the working trees, two for each worker at most
				few, many := oneLiners(b, r, "few", 4), oneLiners(b, r, "many", 16)
				b.ReportMetric(cold.wall, "cold-s")
				b.ReportMetric((many.cpu-few.cpu)/12, "cpu-s/change")
				b.ReportMetric(float64(many.gits-few.gits)/12, "gits/change")
			}
		})
	}
}

// largeRepository makes a repository with so many files, in 1,600 folders.
func largeRepository(b *testing.B, files int) *repo {
	b.Helper()
	content := map[string]string{"pfl-forge.yaml": "parallel_workers: 4\nverify: [\"true\"]\n" +
		"recipes:\n  line:\n    run: echo x >>\"$FILE\"\n    params: [{name: FILE}]\n"}
	for i := range files {
		content[largeFile(i)] = fmt.Sprintf("package p\n\n// V%d is a value.\nconst V%[1]d = %[1]d\n%s", i, bytes.Repeat([]byte("// more\n"), i%400))
	}
	return newRepo(b, content)
}

// largeFile returns the path of a file of largeRepository.
func largeFile(i int) string { return fmt.Sprintf("d%02d/e%02d/f%d.go", i%40, i/40%40, i) }

// runCost is what a run took: processor and wall seconds, and git processes.
type runCost struct {
	cpu, wall float64
	gits      int
}

// oneLiners merges n changes of a line each.
func oneLiners(b *testing.B, r *repo, name string, n int) runCost {
	b.Helper()
	before := len(r.subjects())
	for i := range n {
		r.must(0, "create", fmt.Sprintf("%s-%02d", name, i), "--title", fmt.Sprintf("Line %s %d", name, i), "--recipe", "line", "--with", "FILE="+largeFile(i*61))
	}
	count := filepath.Join(b.TempDir(), "gits")
	git, err := exec.LookPath("git")
	if err != nil {
		b.Fatal(err)
	}
	wrapper := b.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho x >>'%s'\nexec '%s' \"$@\"\n", count, git)
	if err := os.WriteFile(filepath.Join(wrapper, "git"), []byte(script), 0o755); err != nil {
		b.Fatal(err)
	}
	r.env = []string{"PATH=" + wrapper + string(filepath.ListSeparator) + os.Getenv("PATH")}
	run := r.command(b.Context(), "run")
	began := time.Now()
	if out, err := run.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	wall := time.Since(began).Seconds()
	ran, err := os.ReadFile(count)
	if err != nil {
		b.Fatal(err)
	}
	if got := len(r.subjects()) - before; got != n {
		b.Fatalf("%d merged, want %d", got, n)
	}
	used := run.ProcessState.UserTime() + run.ProcessState.SystemTime()
	return runCost{used.Seconds(), wall, bytes.Count(ran, []byte("x"))}
}
