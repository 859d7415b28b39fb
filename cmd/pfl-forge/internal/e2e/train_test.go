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

// queued makes a repository with n files, and asks for as many changes, each of
// a file of its own. queue is merge_queue.
func queued(t testing.TB, n, workers int, queue, verify string, env ...string) *repo {
	t.Helper()
	files := map[string]string{"pfl-forge.yaml": fmt.Sprintf("parallel_workers: %d\nmerge_queue: {%s}\nverify: [%q]\n"+
		"recipes:\n  line:\n    run: echo x >\"$FILE\"\n    params: [{name: FILE}]\n", workers, queue, verify)}
	for i := range n {
		files[fmt.Sprintf("f%02d.txt", i)] = "begin\n"
	}
	r := newRepo(t, files, env...)
	for i := range n {
		id := fmt.Sprintf("line-%02d", i)
		if got := r.forge("create", id, "--title", "Line "+id, "--recipe", "line", "--with", fmt.Sprintf("FILE=f%02d.txt", i)); got.code != 0 {
			t.Fatalf("create: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
		}
	}
	return r
}

// ways are those in which changes are verified: merge_queue, by their names.
var ways = []struct{ name, queue string }{
	{"one-by-one", "parallel: 1"},
	{"train", ""},
	{"once", "verify_before_review: false"},
	{"batch", "verify_before_review: false, batch: 8"},
}

// TestMergeTrain: changes that are verified on top of those before them land
// once each, with no more verifies than one by one, with one for each change
// where they are verified on what lands alone, and with far fewer in batches.
func TestMergeTrain(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	const n = 10
	for _, way := range ways[1:] {
		t.Run(way.name, func(t *testing.T) {
			count := filepath.Join(t.TempDir(), "count")
			r := queued(t, n, 5, way.queue, fmt.Sprintf("sleep 0.2; echo x >>'%s'", count), unconfined) // for the file in which verify counts
			if got := r.forge("run"); got.code != 0 {
				t.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			log := r.git("log", "--format=%s")
			for i := range n {
				if line := fmt.Sprintf("Line line-%02d", i); strings.Count(log, line) != 1 {
					t.Errorf("%s is merged %d times:\n%s", line, strings.Count(log, line), log)
				}
			}
			// One for the review unless it is left out, and one for the merge of all but the first.
			most := 2 * n
			if way.name == "once" {
				most = n
			}
			if way.name == "batch" { // whichever come first may be too few for a batch
				if ran := runs(t, count); ran < 1 || ran > n/2 {
					t.Errorf("verify ran %d times for %d changes in batches", ran, n)
				}
				return
			}
			if ran := runs(t, count); ran < n || ran > most*13/10 {
				t.Errorf("verify ran %d times for %d changes", ran, n)
			}
		})
	}
}

// runs returns how often a verify command ran that counts in a file.
func runs(t testing.TB, file string) int {
	t.Helper()
	ran, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(ran), "x")
}

// BenchmarkMergeTrain reports how long 16 changes take with a verify of some seconds
// and eight workers, from the start of the run to its end: one after the other, each
// on top of those before it, and verified once on what lands; and each as a multiple
// of the ideal, which is one verify for each change, divided by the workers.
func BenchmarkMergeTrain(b *testing.B) {
	const n, workers, seconds = 16, 8, 4.0
	for b.Loop() {
		for _, way := range ways {
			count := filepath.Join(b.TempDir(), "count")
			r := queued(b, n, workers, way.queue, fmt.Sprintf("sleep %g; echo x >>'%s'", seconds, count), unconfined)
			began := time.Now()
			if got := r.forge("run"); got.code != 0 {
				b.Fatalf("run: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
			}
			took := time.Since(began).Seconds()
			b.ReportMetric(took, way.name+"-s")
			b.ReportMetric(took/(n*seconds/workers), way.name+"/ideal")
			b.ReportMetric(float64(runs(b, count)), way.name+"-verifies")
		}
	}
}

// BenchmarkBadTrain reports what 100 changes cost of which three never pass,
// with a check that fails every twentieth time whatever it is run on: how often
// verify runs for each change, and how many of the good changes land.
func BenchmarkBadTrain(b *testing.B) {
	const n, bad, workers = 100, 3, 8
	for b.Loop() {
		for _, way := range ways[1:] {
			count := filepath.Join(b.TempDir(), "count")
			verify := fmt.Sprintf("sleep 0.2; echo x >>'%s' && test $(($(wc -l <'%[1]s') %% 20)) != 0", count)
			for i := range bad {
				verify += fmt.Sprintf(" && ! grep -q x f%02d.txt", 17+30*i)
			}
			r := queued(b, n, workers, way.queue, verify, unconfined)
			began := time.Now()
			got := r.forge("run")
			landed := strings.Count(r.git("log", "--format=%s"), "Line line-")
			b.ReportMetric(time.Since(began).Seconds(), way.name+"-s")
			b.ReportMetric(float64(runs(b, count))/n, way.name+"-verifies/change")
			b.ReportMetric(float64(landed)/(n-bad), way.name+"-landed/good")
			b.Logf("%s: %s", way.name, got.stdout[max(0, len(got.stdout)-300):])
		}
	}
}
