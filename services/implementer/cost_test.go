package implementer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// network are the operations that talk to the origin.
var network = []git.Operation{git.OpFetch, git.OpPush, git.OpList}

// questions counts what do asks of the origin, such as "1 fetch, 2 push".
func questions(t *testing.T, do func(ctx context.Context)) string {
	t.Helper()
	var mu sync.Mutex
	count := map[git.Operation]int{}
	do(git.WithObserver(t.Context(), func(ctx context.Context, op git.Operation) (context.Context, func(error)) {
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(network, op) {
			count[op]++
		}
		return ctx, func(error) {}
	}))
	var list []string
	for _, op := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprint(count[op], " ", op))
	}
	return strings.Join(list, ", ")
}

// Each question costs an origin, and a clone, the time of all their refs. So a change
// asks for no more than is written here, from its beginning to the end of its task.
func TestWhatAMergeAsksOfTheOrigin(t *testing.T) {
	t.Parallel()
	const task = "fix-001"
	ok := func(t *testing.T, r forge.Result) forge.Result {
		t.Helper()
		if r.Failure() != nil {
			t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
		}
		return r
	}
	for name, c := range map[string]struct {
		// meanwhile has another one push before the merge.
		meanwhile                      bool
		implement, rebase, merge, over string
	}{
		"on the tip": {implement: "1 fetch, 1 push", rebase: "1 fetch, 1 push", merge: "1 fetch, 2 push", over: "1 push"},
		"after another's push": {
			meanwhile: true, implement: "1 fetch, 1 push", rebase: "1 fetch, 1 push", merge: "2 fetch, 2 push", over: "1 push",
		},
	} {
		t.Run(name, func(t *testing.T) {
			person := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
			origin := gittest.At(t, person.Origin())
			w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
			want := func(step, want string, do func(ctx context.Context)) {
				t.Helper()
				if got := questions(t, do); got != want {
					t.Errorf("%s: %s, want %s", step, got, want)
				}
			}
			var r forge.Result
			want("implement", c.implement, func(ctx context.Context) {
				r = ok(t, w.imp.implement(ctx, recipe(1, "write", "FILE", "new.txt", "TEXT", "x"), silent))
			})
			im := forge.As[*forge.Implementation](r.Output)
			re := command(forge.StepRebase, 1)
			re.Task.Base, re.Task.Head = im.Base, im.Head
			want("rebase", c.rebase, func(ctx context.Context) { r = ok(t, w.imp.rebase(ctx, re, silent)) })
			if c.meanwhile {
				person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
				person.Git("push", "-q", origin.Dir, "main")
			}
			m := merge(1, forge.As[*forge.Rebase](r.Output))
			w.want(m)
			want("merge", c.merge, func(ctx context.Context) { r = ok(t, w.imp.merge(ctx, m, silent)) })
			if out := forge.As[*forge.MergeResult](r.Output); out.Outcome != forge.MergeDone || origin.Head("main") != git.OID(out.Commit) {
				t.Fatalf("got %+v", out)
			}
			w.intent(forge.StatusDone)
			want("end of the task", c.over, func(ctx context.Context) {
				w.imp.release(ctx, live.Control{To: m.To, Released: []forge.TaskID{task}})
			})
			if left := origin.Git("for-each-ref", "refs/forge/_heads", "refs/forge/fix/fix-001/merge"); left != "" {
				t.Errorf("the origin keeps %q", left)
			}
		})
	}
}

// BenchmarkMergeAtACrowdedOrigin compares what a merge takes, from its rebase
// to the end of its task, at an origin that keeps a thousand other tasks, with
// two hidden refs each, with one that keeps none.
func BenchmarkMergeAtACrowdedOrigin(b *testing.B) {
	const others = 1000
	empty, crowded := startSeries(b), startSeries(b)
	crowd(b, crowded.origin, others)
	var alone, among [2][]time.Duration
	for n := 1; b.Loop(); n++ {
		for i, took := range empty.merge(n) {
			alone[i] = append(alone[i], took)
		}
		for i, took := range crowded.merge(n) {
			among[i] = append(among[i], took)
		}
	}
	ms := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2].Microseconds()) / 1000
	}
	for i, step := range []string{"all", "merge"} {
		b.ReportMetric(ms(alone[i]), step+"-alone-ms")
		b.ReportMetric(ms(among[i]), step+"-crowded-ms")
		b.ReportMetric(ms(among[i])/ms(alone[i]), step+"-ratio")
	}
}

// series merges change after change at its origin.
type series struct {
	*world
	origin gittest.Repo
}

// startSeries begins a repository, its origin and a clone of that.
func startSeries(b *testing.B) series {
	b.Helper()
	person := gittest.New(b, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(b, person.Origin())
	return series{worldOn(b, origin, repotest.Clone(b, origin.Dir), bustest.Start(b)), origin}
}

// crowd has the origin keep a commit of each of other tasks, as if they were ready to be merged.
func crowd(tb testing.TB, origin gittest.Repo, others int) {
	tb.Helper()
	base, tree := string(origin.Head("main")), origin.Git("rev-parse", "main^{tree}")
	for n := range others {
		// As of a worker: each is a file of its own.
		commit := origin.Git("-c", "user.name=a", "-c", "user.email=a@b", "commit-tree", "-p", base, "-m", fmt.Sprint(n), tree)
		for _, ref := range []string{fmt.Sprintf("refs/forge/other-%d/other-%d-001/1/kept/%s", n, n, commit), fmt.Sprintf("refs/forge/_heads/other-%d-001", n)} {
			path := filepath.Join(origin.Dir, ref)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(commit+"\n"), 0o644)); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// land implements a change, and returns how long it takes from there, and how
// long its merge alone does, for which all others wait.
func (l series) merge(n int) (took [2]time.Duration) {
	l.t.Helper()
	intent := forge.IntentID(fmt.Sprint("fix-", n))
	key := forge.Key{Project: repotest.Project, Intent: intent}
	l.says(intent, forge.StatusExecuting, forge.TaskImplementing)
	im := l.implemented(of(intent, recipe(1, "write", "FILE", fmt.Sprint(n, ".txt"), "TEXT", "x")))
	began := time.Now()
	c := of(intent, command(forge.StepRebase, 1))
	c.Task.Base, c.Task.Head = im.Base, im.Head
	r := l.imp.rebase(l.t.Context(), c, silent)
	if r.Failure() != nil {
		l.t.Fatal(r.Failure())
	}
	m := of(intent, merge(1, forge.As[*forge.Rebase](r.Output)))
	ready := time.Now()
	if out := l.merges(m); out.Outcome != forge.MergeDone {
		l.t.Fatalf("got %+v", out)
	}
	took[1] = time.Since(ready)
	l.journal(key, forge.Record{Summary: forge.Summary{Key: key, Status: forge.StatusDone}})
	l.imp.release(l.t.Context(), live.Control{To: key, Released: []forge.TaskID{m.Attempt.Task}})
	took[0] = time.Since(began)
	return took
}

// While the origin takes its time to delete the refs of a task that is over,
// the next one is merged.
func TestNoMergeWaitsForTheEndOfAnotherTask(t *testing.T) {
	t.Parallel()
	person := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
	origin := gittest.At(t, person.Origin())
	w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
	w.says("one", forge.StatusExecuting, forge.TaskImplementing)
	w.says("two", forge.StatusExecuting, forge.TaskImplementing)
	ready := func(intent forge.IntentID) forge.Command {
		im := w.implemented(of(intent, recipe(1, "write", "FILE", string(intent), "TEXT", "x")))
		c := of(intent, command(forge.StepRebase, 1))
		c.Task.Base, c.Task.Head = im.Base, im.Head
		r := w.imp.rebase(t.Context(), c, silent)
		if r.Failure() != nil {
			t.Fatal(r.Failure())
		}
		return of(intent, merge(1, forge.As[*forge.Rebase](r.Output)))
	}
	one, two := ready("one"), ready("two")
	if out := w.merges(one); out.Outcome != forge.MergeDone {
		t.Fatalf("got %+v", out)
	}
	w.journal(one.To, forge.Record{Summary: forge.Summary{Key: one.To, Status: forge.StatusDone}})

	marks := t.TempDir()
	slow := filepath.Join(origin.Dir, "hooks", "pre-receive")
	script := "#!/bin/sh\ncd " + marks + "\nwhile read old new ref; do case $new in *[!0]*) ;; " +
		"*) touch begun; n=0; until test -e go || test $n -gt 9000; do n=$((n+1)); sleep 0.02; done;; esac; done\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(slow), 0o700), os.WriteFile(slow, []byte(script), 0o700)); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	goOn := func() {
		if err := os.WriteFile(filepath.Join(marks, "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { goOn(); <-over })
	go func() {
		defer close(over)
		w.imp.release(t.Context(), live.Control{To: one.To, Released: []forge.TaskID{one.Attempt.Task}})
	}()
	wait.Until(t, "the origin deletes refs", func() bool { return exists(filepath.Join(marks, "begun")) })
	w.want(two)
	merged := make(chan forge.Result, 1)
	go func() { merged <- w.imp.merge(t.Context(), two, silent) }()
	r := wait.For(t, merged)
	goOn()
	<-over
	if out := forge.As[*forge.MergeResult](r.Output); out == nil || out.Outcome != forge.MergeDone {
		t.Errorf("got %+v", r.Output)
	}
	if left := origin.Git("for-each-ref", "refs/forge/_heads/one-001", "refs/forge/one/one-001/merge"); left != "" {
		t.Errorf("the origin keeps %q", left)
	}
}
