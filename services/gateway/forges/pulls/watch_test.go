package pulls_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/deliveries"
	"github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/pulls"
)

// run has a keeper watch until what it returns is called, or the test ends.
func (w *world) run(k *pulls.Keeper) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := wait.For(w.t, ended); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// until waits for a report that fits, and returns it.
func (w *world) until(what string, fits func(p *forge.PullRequest) bool) (p *forge.PullRequest) {
	w.t.Helper()
	wait.Until(w.t, "it is reported: "+what, func() bool {
		for _, r := range w.reports() {
			if r.To != w.to || r.Attempt != attempt || r.Replica != "one" || !r.Answers() {
				w.t.Fatalf("reported is %+v", r)
			}
			if p = forge.As[*forge.PullRequest](r.Output); fits(p) {
				return true
			}
		}
		return false
	})
	return p
}

// often sweeps all the time.
func often(c *pulls.Config) { c.Every = 5 * time.Millisecond }

// TestSweep: without any hook everything is reported, each snapshot once, also
// by a keeper that has just begun.
func TestSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper(often)
	w.open(k)
	stop := w.run(k)
	w.until("it is open", func(p *forge.PullRequest) bool { return p.State == forge.PullOpen })
	w.status("ada", "ci/unit", "failure")
	w.until("a check failed", func(p *forge.PullRequest) bool { return p.Checks[0].State == forge.PullCheckFailed })
	stop()
	w.status("ada", "ci/unit", "success") // while no gateway is there
	w.review("ada", "APPROVED", "")
	stop = w.run(w.keeper(often))
	w.until("nothing is in the way", func(p *forge.PullRequest) bool { return p.Blocked == "" && p.State == forge.PullOpen })
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls/1/merge", object{"do": "fast-forward-only"}, nil)
	merged := w.until("it is merged", func(p *forge.PullRequest) bool { return p.State == forge.PullMerged })
	if merged.By != "ada" || merged.MergeCommit != w.in.Head {
		t.Errorf("merged it is %+v", merged)
	}
	n := len(w.reports())
	asked := w.fake.Asked("GET", "/pulls/1")
	wait.Until(t, "it is looked at again", func() bool { return w.fake.Asked("GET", "/pulls/1") > asked+5 })
	if again := len(w.reports()); again != n {
		t.Errorf("what was reported is reported again: %d after %d", again, n)
	}
	stop()
	// A pull request that ended while no gateway was there is found as well.
	w.run(w.keeper())
	wait.Until(t, "it is reported once more", func() bool { return len(w.reports()) == n+1 })
}

// TestSweepAfterALostLease: a keeper that watches again, after another one has,
// begins with a sweep.
func TestSweepAfterALostLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper(func(c *pulls.Config) { c.Every = time.Hour })
	w.open(k)
	stop := w.run(k)
	w.until("it is open", func(p *forge.PullRequest) bool { return p.State == forge.PullOpen })
	stop()
	w.status("ada", "ci/unit", "failure")
	w.run(k)
	w.until("a check failed", func(p *forge.PullRequest) bool { return p.Checks[0].State == forge.PullCheckFailed })
}

// box is a stream of deliveries, and an address for hooks. Signatures are the door's.
type box struct {
	mu sync.Mutex
	// list has the oldest first; the number of a delivery is its place, from 1.
	list  []deliveries.Delivery
	heard func()
}

// OnDelivery calls do for each delivery from now on.
func (b *box) OnDelivery(_ context.Context, do func()) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = do
	return nil
}

// After hands over those behind a number.
func (b *box) After(_ context.Context, seq uint64, take func(deliveries.Delivery) error) (uint64, error) {
	b.mu.Lock()
	list := b.list
	b.mu.Unlock()
	for i := int(seq); i < len(list); i++ {
		if err := take(list[i]); err != nil {
			return uint64(i), err
		}
	}
	return uint64(len(list)), nil
}

// put adds a delivery.
func (b *box) put(hook, event string, body object) {
	data, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	b.mu.Lock()
	b.list = append(b.list, deliveries.Delivery{Hook: hook, Event: event, Body: data})
	heard := b.heard
	b.mu.Unlock()
	if heard != nil {
		heard()
	}
}

// TestHints: a delivery of the pull request, or of its head's status, leads to a
// look; one of another hook, another repository, or another commit leads to none.
func TestHints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &box{}
	k := w.keeper(func(c *pulls.Config) { c.Deliveries, c.Hooks = b, []string{"work"} })
	w.open(k)
	w.run(k)
	w.until("it is open", func(p *forge.PullRequest) bool { return p.State == forge.PullOpen })
	repository := object{"id": 1, "full_name": "root1/web"}
	w.status("ada", "ci/unit", "failure")
	for range 3 {
		b.put("work", "status", object{"sha": w.in.Head, "repository": repository})
	}
	w.until("a check failed", func(p *forge.PullRequest) bool { return p.Checks[0].State == forge.PullCheckFailed })
	asked := w.fake.Asked("GET", "/pulls/1")
	b.put("other", "pull_request", object{"number": 1, "pull_request": object{"number": 1}, "repository": repository})
	b.put("work", "pull_request", object{"number": 1, "pull_request": object{"number": 1}, "repository": object{"id": 99, "full_name": "root1/other"}})
	b.put("work", "status", object{"sha": w.in.Parent, "repository": repository})
	b.put("work", "push", object{"not": "readable"})
	w.review("ada", "APPROVED", "")
	b.put("work", "pull_request_review_approved", object{"pull_request": object{"number": 1}, "repository": repository})
	w.until("it is approved", func(p *forge.PullRequest) bool { return len(p.Reviews) == 1 })
	if n := w.fake.Asked("GET", "/pulls/1") - asked; n > 6 { // one look, and what a look before was still asking
		t.Errorf("deliveries that lead to nothing led to %d requests", n)
	}
}

// TestMarks: a pull request of another account with our mark is not reported, nor
// is ours with the mark of a project that is not in this repository; and one whose
// mark was taken away is reported again when its step is carried out once more.
func TestMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	w.open(k)
	body := w.show().Body
	w.commit("main", "side/a", "x.txt", "x")
	w.as("ada", "POST", "/repos/"+w.repo+"/pulls", object{"head": "side/a", "base": "main", "title": "t", "body": body}, nil)
	w.as("ada", "PATCH", "/repos/"+w.repo+"/pulls/1", object{"title": "t", "body": strings.Replace(body, `"shop"`, `"other"`, 1)}, nil)
	b := &box{}
	fresh := w.keeper(often, func(c *pulls.Config) { c.Deliveries, c.Hooks = b, []string{"work"} })
	stop := w.run(fresh)
	theirs := w.fake.Asked("GET", "/pulls/2")
	wait.Until(t, "that of another is looked at", func() bool {
		b.put("work", "pull_request", object{"pull_request": object{"number": 2}, "repository": object{"id": 1, "full_name": w.repo}})
		return w.fake.Asked("GET", "/pulls/2") > theirs+5
	})
	asked := w.fake.Asked("GET", "/pulls/1")
	wait.Until(t, "it is looked at", func() bool { return w.fake.Asked("GET", "/pulls/1") > asked+9 })
	if n := len(w.reports()); n != 0 {
		t.Fatalf("%d are reported: %+v", n, w.reports()[0])
	}
	w.open(fresh)
	w.until("it is open", func(p *forge.PullRequest) bool { return p.Number == 1 })
	stop()
	if !strings.HasPrefix(w.show().Body, body[:40]) {
		t.Error("the mark was not written again")
	}
}

// TestReportsThatFail: what a runner refuses is not reported again before it is
// another one; what could not be handed over is.
func TestReportsThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	tried, answer := 0, error(&work.RefusedError{Reason: "no such intent"})
	k := w.keeper(often, func(c *pulls.Config) {
		c.Publish = func(context.Context, forge.Result) error {
			mu.Lock()
			defer mu.Unlock()
			tried++
			return answer
		}
	})
	w.open(k)
	w.run(k)
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return tried
	}
	wait.Until(t, "it is reported", func() bool { return count() == 1 })
	asked := w.fake.Asked("GET", "/pulls/1")
	wait.Until(t, "it is looked at again", func() bool { return w.fake.Asked("GET", "/pulls/1") > asked+5 })
	if n := count(); n != 1 {
		t.Errorf("it was reported %d times", n)
	}
}

// TestLimitOfTheSweep: while the forge wants to be left alone, nothing is asked, and hints wait.
func TestLimitOfTheSweep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &box{}
	var mu sync.Mutex
	var later time.Duration
	k := w.keeper(func(c *pulls.Config) {
		c.Deliveries, c.Hooks = b, []string{"work"}
		c.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(later)
		}
	})
	w.open(k)
	w.fake.Script(forgetest.Fault{Part: "/issues", By: "bot", Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"600"}}})
	before := w.fake.Asked("GET", "")
	w.run(k)
	wait.Until(t, "it has met the limit", func() bool { return w.fake.Asked("GET", "") >= before+2 })
	met := w.fake.Asked("GET", "")
	for range 20 {
		b.put("work", "pull_request", object{"pull_request": object{"number": 1}, "repository": object{"id": 1, "full_name": "root1/web"}})
	}
	<-wait.Briefly(t, 100*time.Millisecond).Done()
	if n := w.fake.Asked("GET", "") - met; n != 0 || len(w.reports()) != 0 {
		t.Errorf("it asks %d times, and reports %d", n, len(w.reports()))
	}
	mu.Lock()
	later = 2 * time.Hour
	mu.Unlock()
	b.put("work", "push", object{})
	w.until("it is open", func(p *forge.PullRequest) bool { return p.State == forge.PullOpen })
}
