package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// queued makes a repository with n files, and asks for as many changes, each of a file of its own. parallel is
// merge_queue.parallel.
func queued(t testing.TB, n, workers, parallel int, verify string) *repo {
	t.Helper()
	files := map[string]string{"pfl-forge.yaml": fmt.Sprintf("parallel_workers: %d\nmerge_queue: {parallel: %d}\nverify: [%q]\n"+
		"recipes:\n  line:\n    run: echo x >>\"$FILE\"\n    params: [{name: FILE}]\n", workers, parallel, verify)}
	for i := range n {
		files[fmt.Sprintf("f%02d.txt", i)] = "begin\n"
	}
	r := newRepo(t, files)
	for i := range n {
		id := fmt.Sprintf("line-%02d", i)
		if got := r.forge("create", id, "--title", "Line "+id, "--recipe", "line", "--with", fmt.Sprintf("FILE=f%02d.txt", i)); got.code != 0 {
			t.Fatalf("create: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
	}
	return r
}

// TestMergeTrain: changes that are verified on top of those before them land once each, with no more verifies than one by one.
func TestMergeTrain(t *testing.T) {
	testsize.OnlyFull(t)
	const n = 10
	t.Setenv("FORGE_SANDBOX", "unconfined") // for the file in which verify counts
	count := filepath.Join(t.TempDir(), "count")
	r := queued(t, n, 5, 5, fmt.Sprintf("sleep 0.2; echo x >>'%s'", count))
	if got := r.forge("run"); got.code != 0 {
		t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	log := r.git("log", "--format=%s")
	for i := range n {
		if line := fmt.Sprintf("Line line-%02d", i); strings.Count(log, line) != 1 {
			t.Errorf("%s is merged %d times:\n%s", line, strings.Count(log, line), log)
		}
	}
	ran, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	// One for the review, and one for the merge of all but the first.
	if runs := strings.Count(string(ran), "x"); runs < n || runs > 2*n*13/10 {
		t.Errorf("verify ran %d times for %d changes", runs, n)
	}
}

// BenchmarkMergeTrain reports how long 16 changes take with a verify of two seconds and eight workers, from the start of the run to its
// end: one after the other, and each on top of those before it; and both as a multiple of the ideal, which is all verifies, each
// change's own and the one for its merge, divided by the workers.
func BenchmarkMergeTrain(b *testing.B) {
	const n, workers, seconds = 16, 8, 2.0
	for b.Loop() {
		for name, parallel := range map[string]int{"one-by-one": 1, "train": workers} {
			r := queued(b, n, workers, parallel, fmt.Sprintf("sleep %g", seconds))
			began := time.Now()
			if got := r.forge("run"); got.code != 0 {
				b.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			took := time.Since(began).Seconds()
			b.ReportMetric(took, name+"-s")
			b.ReportMetric(took/(2*n*seconds/workers), name+"/ideal")
		}
	}
}

// BenchmarkBadTrain reports what 100 changes cost of which three never pass, with a check that fails every twentieth time whatever it is
// run on: how often verify runs for each change, and how many of the good changes land.
func BenchmarkBadTrain(b *testing.B) {
	const n, bad, workers = 100, 3, 8
	b.Setenv("FORGE_SANDBOX", "unconfined") // for the file in which verify counts
	for b.Loop() {
		count := filepath.Join(b.TempDir(), "count")
		verify := fmt.Sprintf("sleep 0.2; echo x >>'%s'; test $(($(wc -l <'%[1]s') %% 20)) != 0", count)
		for i := range bad {
			verify += fmt.Sprintf("; ! grep -q x f%02d.txt", 17+30*i)
		}
		verify = strings.ReplaceAll(verify, "; test", " && test")
		r := queued(b, n, workers, workers, strings.ReplaceAll(verify, "; !", " && !"))
		began := time.Now()
		got := r.forge("run")
		ran, err := os.ReadFile(count)
		if err != nil {
			b.Fatal(err)
		}
		landed := strings.Count(r.git("log", "--format=%s"), "Line line-")
		b.ReportMetric(time.Since(began).Seconds(), "s")
		b.ReportMetric(float64(strings.Count(string(ran), "x"))/n, "verifies/change")
		b.ReportMetric(float64(landed)/(n-bad), "landed/good")
		b.Logf("%s", got.stdout[max(0, len(got.stdout)-3000):])
	}
}
