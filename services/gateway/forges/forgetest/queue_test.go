package forgetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// queue is a way in which a forge merges by itself.
type queue struct {
	dialect string
	// set turns it on, and has something be in the way of a merge at once where
	// the forge would not wait otherwise.
	set func(w *world, f *forgetest.Fake)
	// tests says that it tries changes on the tip, and tells that it tells why
	// one was taken out. strict says that a push takes one out.
	tests, tells, strict bool
}

// waits has main demand a status that is not there.
func waits(w *world) {
	w.as("root1", "POST", "/repos/"+w.repo+"/branch_protections", object{
		"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"ci"},
	})
}

// queuesOf are all of them.
var queuesOf = map[string]queue{
	"gitea":             {dialect: "gitea", set: func(w *world, _ *forgetest.Fake) { waits(w) }},
	"github queue":      {dialect: "github", tests: true, tells: true, strict: true, set: func(w *world, f *forgetest.Fake) { f.Queues.On(w.repo, true, true) }},
	"github auto-merge": {dialect: "github", tells: true, set: func(w *world, f *forgetest.Fake) { f.Queues.On(w.repo, false, true); waits(w) }},
	"gitlab auto-merge": {dialect: "gitlab", tells: true, strict: true, set: func(w *world, f *forgetest.Fake) {
		f.Lab.Set(w.repo, forgetest.Project{Method: "merge", Pipelines: true})
	}},
	"gitlab train": {dialect: "gitlab", tests: true, tells: true, strict: true, set: func(w *world, f *forgetest.Fake) { f.Queues.On(w.repo, true, false) }},
}

// onQueues runs a test on each of them, with a pull request by bot at a head.
func onQueues(t *testing.T, test func(t *testing.T, w *world, f *forgetest.Fake, kind queue, n int64, head git.OID)) {
	t.Helper()
	for name, kind := range queuesOf {
		t.Run(name, func(t *testing.T) {
			f := forgetest.NewFake()
			t.Cleanup(f.Close)
			w := newWorld(t, dialects[kind.dialect], f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
			head := w.commit("forge/a", "a.txt", "a\n", true)
			kind.set(w, f)
			p, err := w.bot().OpenPull(wait.Context(t), w.repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B"})
			if err != nil {
				t.Fatal(err)
			}
			test(t, w, f, kind, p.Number, head)
		})
	}
}

// queueOf returns where a pull request stands.
func queueOf(t *testing.T, c pulls.Forge, w *world, n int64) forges.Queue {
	t.Helper()
	q, err := c.Queue(wait.Context(t), w.repo, n, "main")
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestQueue: a pull request is put in for the commit that was named, once,
// taken out by whomever and for whatever, and merged.
func TestQueue(t *testing.T) {
	t.Parallel()
	onQueues(t, func(t *testing.T, w *world, f *forgetest.Fake, kind queue, n int64, head git.OID) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		if q := queueOf(t, c, w, n); q.In || q.Out != nil || q.Tests != kind.tests {
			t.Errorf("at first it is %+v", q)
		}
		base, err := c.BranchHead(ctx, w.repo, "main")
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []git.OID{base, "", "main"} {
			if err := c.Enqueue(ctx, w.repo, n, "main", wrong); err == nil || f.Queues.Head(w.repo, n) != "" {
				t.Errorf("put in for %q: %v", wrong, err)
			}
		}
		for range 2 {
			if err := c.Enqueue(ctx, w.repo, n, "main", head); err != nil {
				t.Fatal(err)
			}
		}
		placed := kind.dialect == "github" && kind.tests
		if q := queueOf(t, c, w, n); !q.In || q.Out != nil || f.Queues.Head(w.repo, n) != string(head) || q.Position > 0 != placed {
			t.Errorf("put in it is %+v, for %s", q, f.Queues.Head(w.repo, n))
		}
		for range 2 {
			if err := c.Dequeue(ctx, w.repo, n); err != nil {
				t.Fatal(err)
			}
		}
		if q := queueOf(t, c, w, n); q.In || q.Out == nil || q.Out.By != "bot" || q.Out.Cause != forges.CauseOther {
			t.Errorf("taken out by us it is %+v, %+v", q, q.Out)
		}
		seen := map[string]bool{}
		for cause, want := range map[string]forges.Cause{
			"failed_checks": forges.CauseChecks, "merge_conflict": forges.CauseConflict, "manual": forges.CauseOther,
		} {
			if err := c.Enqueue(ctx, w.repo, n, "main", head); err != nil {
				t.Fatal(err)
			}
			if q := queueOf(t, c, w, n); !q.In || q.Out != nil {
				t.Errorf("put in again it is %+v", q)
			}
			by := map[bool]string{true: "ada"}[cause == "manual"]
			f.Queues.Drop(w.repo, n, cause, by, string(base))
			q := queueOf(t, c, w, n)
			if !kind.tells {
				want = forges.CauseOther
			}
			if q.In || q.Out == nil || q.Out.Cause != want || q.Out.By != by || q.Out.ID == "" || seen[q.Out.ID] || q.Out.Reason == "" {
				t.Fatalf("taken out for %s it is %+v, %+v", cause, q, q.Out)
			}
			seen[q.Out.ID] = true
		}
		if err := c.Enqueue(ctx, w.repo, n, "main", head); err != nil {
			t.Fatal(err)
		}
		merge := f.Queues.Merge(w.repo, n)
		if p, err := c.Pull(ctx, w.repo, n); err != nil || merge == "" || p.State != forges.Merged || string(p.Merge) != merge {
			t.Errorf("merged as %q it is %+v, %v", merge, p, err)
		}
		asked, e1 := c.Message(ctx, w.repo, head)
		message, e2 := c.Message(ctx, w.repo, git.OID(merge))
		if e1 != nil || e2 != nil || strings.HasPrefix(message, asked+" (") == kind.tests { // a queue or a train takes no words
			t.Errorf("merged it says %q, and the change %q: %v, %v", message, asked, e1, e2)
		}
		if q := queueOf(t, c, w, n); q.In || q.Out != nil && kind.dialect == "github" {
			t.Errorf("merged it is %+v", q)
		}
	})
}

// TestQueueAfterAPush: a push takes a pull request out where the forge says so, which is
// no removal for people on GitLab; elsewhere it goes on, for a commit that nobody named.
func TestQueueAfterAPush(t *testing.T) {
	t.Parallel()
	onQueues(t, func(t *testing.T, w *world, f *forgetest.Fake, kind queue, n int64, head git.OID) { //nolint:thelper // it is the test itself
		c := w.bot()
		if err := c.Enqueue(wait.Context(t), w.repo, n, "main", head); err != nil {
			t.Fatal(err)
		}
		w.commit("forge/a", "b.txt", "b\n", false)
		if q := queueOf(t, c, w, n); q.In == kind.strict || kind.dialect == "gitlab" && !kind.tests && q.Out != nil {
			t.Errorf("after a push it is %+v", q)
		}
		if err := c.Dequeue(wait.Context(t), w.repo, n); err != nil || f.Queues.Head(w.repo, n) != "" {
			t.Errorf("taken out: %v", err)
		}
	})
}

// TestQueueFails: an answer that was lost puts nothing in twice, a forge that
// is away says when to come again, and a right that is missing is told as that.
func TestQueueFails(t *testing.T) {
	t.Parallel()
	onQueues(t, func(t *testing.T, w *world, f *forgetest.Fake, kind queue, n int64, head git.OID) { //nolint:thelper // it is the test itself
		method := map[bool]string{true: "PUT", false: "POST"}[kind.dialect == "gitlab" && !kind.tests]
		part := map[string]string{"gitea": "/merge", "github": "/graphql", "gitlab": "/merge"}[kind.dialect]
		enqueue := func(fault ...forgetest.Fault) error {
			f.Script(fault...)
			return w.bot().Enqueue(wait.Context(t), w.repo, n, "main", head)
		}
		var parked *forges.ParkedError
		if err := enqueue(forgetest.Fault{Method: method, Part: part, Status: 503}); !errors.As(err, &parked) || f.Queues.Head(w.repo, n) != "" {
			t.Errorf("away: %v", err)
		}
		if kind.dialect != "github" { // whose first question is asked by POST as well
			if err := enqueue(forgetest.Fault{Method: method, Part: part, Status: 403}); !errors.Is(err, forges.ErrDenied) {
				t.Errorf("not allowed: %v", err)
			}
			if err := enqueue(forgetest.Fault{Method: method, Part: part, Status: 502, After: true}); !errors.As(err, &parked) {
				t.Errorf("lost: %v", err)
			}
		}
		before := f.Asked(method, part)
		if err := enqueue(); err != nil || f.Queues.Head(w.repo, n) != string(head) {
			t.Errorf("again: %v", err)
		}
		if kind.dialect != "github" && f.Asked(method, part) != before {
			t.Error("it was put in twice")
		}
	})
}

// TestNoQueue: a forge without a queue says which setting turns one on.
func TestNoQueue(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newWorld(t, dialects["github"], f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	n := w.reviewed(w.bot())
	head, err := w.bot().BranchHead(wait.Context(t), w.repo, "forge/a")
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.bot().Queue(wait.Context(t), w.repo, n, "main")
	for _, err := range []error{err, w.bot().Enqueue(wait.Context(t), w.repo, n, "main", head)} {
		if !errors.Is(err, forges.ErrMethod) || !strings.Contains(fmt.Sprint(err), "Require merge queue") {
			t.Errorf("without a queue: %v", err)
		}
	}
}

// TestMergeWhenChecksSucceed: what Gitea is told to merge when its checks have passed is told as
// queued, is taken back, and is merged as soon as they have: on the fake, and on a real Gitea.
func TestMergeWhenChecksSucceed(t *testing.T) {
	t.Parallel()
	onGiteas(t, func(t *testing.T, w *world, f *forgetest.Fake) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		head := w.commit("forge/a", "a.txt", "a\n", true)
		waits(w)
		p, err := c.OpenPull(ctx, w.repo, "forge/a", "main", forges.PullText{Title: "T", Body: "B"})
		if err != nil {
			t.Fatal(err)
		}
		if q := queueOf(t, c, w, p.Number); q.In || q.Out != nil {
			t.Errorf("at first it is %+v", q)
		}
		for range 2 {
			if err := c.Enqueue(ctx, w.repo, p.Number, "main", head); err != nil {
				t.Fatal(err)
			}
		}
		if q := queueOf(t, c, w, p.Number); !q.In || q.Out != nil {
			t.Errorf("put in it is %+v", q)
		}
		for range 2 {
			if err := c.Dequeue(ctx, w.repo, p.Number); err != nil {
				t.Fatal(err)
			}
		}
		if q := queueOf(t, c, w, p.Number); q.In || q.Out == nil || q.Out.By != "bot" {
			t.Errorf("taken out it is %+v, %+v", q, q.Out)
		}
		if err := c.Enqueue(ctx, w.repo, p.Number, "main", head); err != nil {
			t.Fatal(err)
		}
		w.as("ada", "POST", "/repos/"+w.repo+"/statuses/"+string(head), object{"context": "ci", "state": "success"})
		if f != nil {
			f.Queues.Merge(w.repo, p.Number)
		}
		wait.Until(t, "it is merged", func() bool {
			got, err := c.Pull(ctx, w.repo, p.Number)
			if err != nil {
				t.Fatal(err)
			}
			return got.State == forges.Merged && got.Merge != ""
		})
	})
}
