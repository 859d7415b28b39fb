package git_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// bigRepo has 20,000 files, and a branch "later" that is ten commits ahead of main.
func bigRepo(b *testing.B) (r repo, main, later git.OID) {
	b.Helper()
	r = newRepo(b, map[string]string{"README": "big\n"})
	for i := range 20_000 {
		r.write(fmt.Sprintf("pkg%03d/sub%d/file%d.go", i/100, i%10, i), fmt.Sprintf("package p\n\n// File %d.\nvar x = %d\n", i, i))
	}
	r.git("add", "-A")
	r.git("commit", "-qm", "big")
	main = r.head("main")
	r.git("checkout", "-q", "-b", "later")
	later = r.tenCommits("moved")
	r.git("repack", "-adq")
	return r, main, later
}

// tenCommits changes 50 files of bigRepo.
func (r repo) tenCommits(what string) git.OID {
	for n := range 10 {
		for k := range 5 {
			i := n*1900 + k
			r.write(fmt.Sprintf("pkg%03d/sub%d/file%d.go", i/100, i%10, i), fmt.Sprintf("package p\n\nvar %s = %d\n", what, n))
		}
		r.git("commit", "-qam", "move")
	}
	return r.head("HEAD")
}

// BenchmarkWarmCheckout compares Prepare, after main moved by ten commits, with git worktree add.
func BenchmarkWarmCheckout(b *testing.B) {
	r, _, _ := bigRepo(b)
	p := newPool(b, r.store())
	var warm, cold, first, release []time.Duration
	tip := r.head("HEAD")
	for b.Loop() {
		b.StopTimer()
		c, agent := prepare(b, p, "t", tip)
		agent.write("untracked/file", "x\n")
		agent.write("pkg000/sub0/file0.go", "changed\n")
		if err := c.Release(); err != nil {
			b.Fatal(err)
		}
		tip = r.tenCommits(fmt.Sprint("v", time.Now().UnixNano()))
		b.StartTimer()
		start := time.Now()
		c, err := p.Prepare(b.Context(), "t", tip)
		if err != nil {
			b.Fatal(err)
		}
		warm = append(warm, time.Since(start))
		b.StopTimer()
		start = time.Now()
		if out := r.at(c.Dir()).git("status", "--porcelain", "--ignored"); out != "" {
			b.Fatal(out)
		}
		first = append(first, time.Since(start))
		start = time.Now()
		if err := c.Release(); err != nil {
			b.Fatal(err)
		}
		release = append(release, time.Since(start))
		tree := filepath.Join(b.TempDir(), "tree")
		start = time.Now()
		r.git("worktree", "add", "-q", "--detach", tree, string(tip))
		cold = append(cold, time.Since(start)) // the tree stays: removing it now would slow the next one down
		b.StartTimer()
	}
	b.ReportMetric(median(warm), "warm-ms")
	b.ReportMetric(median(cold), "worktree-add-ms")
	b.ReportMetric(median(warm)/median(cold), "ratio")
	b.ReportMetric(median(first), "first-status-ms")
	b.ReportMetric(median(release), "release-ms")
}

// median in milliseconds.
func median(list []time.Duration) float64 {
	slices.Sort(list)
	return float64(list[len(list)/2].Microseconds()) / 1000
}

// BenchmarkRebase compares a conflict-free Rebase of one commit with git rebase in a worktree
// of the same repository. "merge" adds Keep and Merge of a branch that is not checked out.
func BenchmarkRebase(b *testing.B) {
	r, main, later := bigRepo(b)
	s := r.store()
	tree := r.at(filepath.Join(b.TempDir(), "tree"))
	r.git("worktree", "add", "-q", "--detach", tree.dir, string(main))
	var heads []git.OID // another one each time, as in life: nothing of the result is there before
	for n := range 20 {
		tree.git("checkout", "-q", "-f", "--detach", string(main))
		heads = append(heads, tree.commit("work", map[string]string{"pkg150/sub3/file15003.go": fmt.Sprintf("package p\n\nvar work = %d\n", n)}))
	}
	var ours, whole, theirs []time.Duration
	for n := 0; b.Loop(); n++ {
		head := heads[n%len(heads)]
		start := time.Now()
		got, err := s.Rebase(b.Context(), main, head, later)
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(start)
		ours = append(ours, took)
		r.git("update-ref", "refs/heads/project", string(later))
		start = time.Now()
		if _, err := s.Keep(b.Context(), newest("t"), got.Head); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Merge(b.Context(), "project", later, got.Head); err != nil {
			b.Fatal(err)
		}
		whole = append(whole, took+time.Since(start))
		b.StopTimer()
		if err := s.Sweep(b.Context(), attempt("t").Intent); err != nil {
			b.Fatal(err)
		}
		tree.git("checkout", "-q", "-f", "--detach", string(head))
		start = time.Now()
		tree.git("rebase", "-q", "--onto", string(later), string(main))
		theirs = append(theirs, time.Since(start))
		b.StartTimer()
	}
	b.ReportMetric(median(ours), "rebase-ms")
	b.ReportMetric(median(whole), "with-merge-ms")
	b.ReportMetric(median(theirs), "git-rebase-ms")
	b.ReportMetric(median(ours)/median(theirs), "ratio")
	b.ReportMetric(median(whole)/median(theirs), "ratio-with-merge")
}

// BenchmarkProofs compares noting a merge with noting one whose commit is
// signed and has proofs: what signing adds to a merge.
func BenchmarkProofs(b *testing.B) {
	r := newRepo(b, map[string]string{"README": "small\n"})
	s := r.store()
	base := r.head("main")
	signature := "-----BEGIN SSH SIGNATURE-----\n" + strings.Repeat("x", 300) + "\n-----END SSH SIGNATURE-----\n"
	var plain, signed []time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		heads := []git.OID{
			r.commit("one", map[string]string{"README": fmt.Sprintln("one", n)}), r.commit("two", map[string]string{"README": fmt.Sprintln("two", n)}),
		}
		l := store.PendingMerge{Intent: attempt("t").Intent, Task: "t", Number: n + 1, Parent: base, Commit: heads[0]}
		b.StartTimer()
		start := time.Now()
		if err := s.KeepPendingMerge(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(start))
		start = time.Now()
		o, err := s.SignCommit(b.Context(), heads[1], func([]byte) (string, error) { return signature, nil })
		if err != nil {
			b.Fatal(err)
		}
		l.Commit, l.Proofs = o, strings.Repeat("a statement\n", 300)+fmt.Sprint(n)
		if err := s.KeepPendingMerge(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		signed = append(signed, time.Since(start))
	}
	b.ReportMetric(median(plain), "noted-ms")
	b.ReportMetric(median(signed), "signed-and-noted-ms")
}
