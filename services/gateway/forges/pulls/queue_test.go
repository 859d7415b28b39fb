package pulls_test

import (
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// onQueues runs a test on the forges that have a queue which tries changes on the
// tip, with a pull request that is ready for it. Gitea merges at once what is ready.
func onQueues(t *testing.T, test func(t *testing.T, w *world, k *pulls.Keeper)) {
	t.Helper()
	onOthers(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		w.in.Policy.Method = "queue"
		w.fake.Queues.On(w.repo, true, false)
		k := w.keeper(often)
		w.open(k)
		w.status("ada", "ci/unit", "success")
		w.review("ada", "APPROVED", "good")
		w.in.Number = 1
		test(t, w, k)
	})
}

// enqueue has the pull request merged by the queue, and returns what is seen then.
func (w *world) enqueue(k *pulls.Keeper) *forge.PullRequest {
	w.t.Helper()
	p, err := k.Merge(wait.Context(w.t), w.to, w.in)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// TestQueued: what is ready is put into the queue for its very head, once, also
// where the base branch has moved meanwhile; and what the queue merges is reported.
func TestQueued(t *testing.T) {
	t.Parallel()
	onQueues(t, func(t *testing.T, w *world, k *pulls.Keeper) { //nolint:thelper // it is the test itself
		w.move("main", w.commit("main", "side", "c.txt", "c\n"))
		for range 2 {
			p := w.enqueue(k)
			if p.State != forge.PullOpen || p.Queue == nil || !p.Queue.In || p.Behind || w.fake.Queues.Head(w.repo, 1) != w.in.Head {
				t.Fatalf("it is %+v, %+v, queued for %q", p, p.Queue, w.fake.Queues.Head(w.repo, 1))
			}
		}
		w.run(k)
		w.until("it is queued", func(p *forge.PullRequest) bool { return p.Queue != nil && p.Queue.In })
		merge := w.fake.Queues.Merge(w.repo, 1)
		w.until("it is merged", func(p *forge.PullRequest) bool { return p.State == forge.PullMerged && p.MergeCommit == merge })
	})
}

// TestQueuedAtAnotherHead: what is not ours any more is not merged by the queue: it is taken out
// as soon as it is seen. So is what a person asks to be changed, and what is brought up to date.
func TestQueuedAtAnotherHead(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, happens := range map[string]func(w *world, k *pulls.Keeper){
		"asked to be changed": func(w *world, k *pulls.Keeper) {
			w.review("ada", "REQUEST_CHANGES", "no")
			w.run(k)
		},
		"brought up to date": func(w *world, k *pulls.Keeper) { w.open(k) },
		"pushed by another one": func(w *world, k *pulls.Keeper) {
			w.commit("forge/task-1", "forge/task-1", "d.txt", "d\n")
			w.run(k)
		},
		"asked to be changed, its mark edited": func(w *world, k *pulls.Keeper) {
			body := strings.Replace(w.show().Body, `"queue":true`, `"queue":false`, 1)
			w.as("ada", "PATCH", "/repos/"+w.repo+"/pulls/1", object{"body": body}, nil)
			w.review("ada", "REQUEST_CHANGES", "no")
			w.run(k)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onQueues(t, func(t *testing.T, w *world, k *pulls.Keeper) { //nolint:thelper // it is the test itself
				w.enqueue(k)
				happens(w, k)
				wait.Until(t, "it is taken out", func() bool { return w.fake.Queues.Head(w.repo, 1) == "" })
				if name != "asked to be changed" {
					return
				}
				w.until("that we took it out is no removal", func(p *forge.PullRequest) bool {
					return p.Queue != nil && !p.Queue.In && p.Queue.Out == "" && len(p.Reviews) == 1
				})
			})
		})
	}
}

// TestTakenOut: a queue that takes a pull request out says why, with what the
// checks wrote that failed.
func TestTakenOut(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	onQueues(t, func(t *testing.T, w *world, k *pulls.Keeper) { //nolint:thelper // it is the test itself
		tried := w.commit("main", "tried", "e.txt", "e\n")
		w.fake.Hub.Check(forgetest.CheckRun{
			Repository: w.repo, Commit: tried, Name: "build", Status: "completed", Conclusion: "failure", App: "ci", Summary: "no such file s3cret-of-ours",
		})
		for cause, want := range map[string]string{
			"failed_checks": "checks", "merge_conflict": "conflict", "manual": "other",
		} {
			w.enqueue(k)
			w.fake.Queues.Drop(w.repo, 1, cause, map[bool]string{true: "ada"}[want == "other"], tried)
			p := w.look(k)
			q := p.Queue
			if q == nil || q.In || q.Cause != want || q.Out == "" || q.Reason == "" || (want == "other") != strings.HasSuffix(q.Reason, ", by ada") {
				t.Fatalf("taken out for %s it is %+v", cause, q)
			}
			if want == "checks" && w.dialect == hooks.GitHub && (!strings.Contains(q.Output, "no such file") || strings.Contains(q.Output, "s3cret")) {
				t.Errorf("the output is %q", q.Output)
			}
		}
	})
}

// look returns what is seen of the pull request without anything done.
func (w *world) look(k *pulls.Keeper) *forge.PullRequest {
	w.t.Helper()
	in := *w.in
	in.Head = strings.Repeat("1", 40) // no commit of ours: nothing is merged
	p, err := k.Merge(wait.Context(w.t), w.to, &in)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// TestQueueIsOff: where the forge has no queue, that is told before anything
// waits for it, with the setting that turns one on.
func TestQueueIsOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dialect, w.in.Policy.Method = hooks.GitHub, "queue"
	_, err := w.keeper().Open(wait.Context(t), w.to, attempt, w.in)
	f := pulls.Failure(err)
	if err == nil || f.Reason != forge.FailConfig || !strings.Contains(f.Message, "merge.method: ") || !strings.Contains(f.Message, "Require merge queue") {
		t.Errorf("without a queue: %v", err)
	}
}

// TestMergedAtOnce: Gitea merges at once what is ready.
func TestMergedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.in.Policy.Method = "queue"
	k := w.keeper()
	w.open(k)
	w.status("ada", "ci/unit", "success")
	w.review("ada", "APPROVED", "good")
	w.in.Number = 1
	if p := w.enqueue(k); p.State != forge.PullMerged {
		t.Errorf("it is %+v", p)
	}
}
