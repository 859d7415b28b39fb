package implementer

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/bus/requests"
	buswork "github.com/pfl-forge/pfl-forge/bus/work"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// sharing are two implementers with clones of one origin.
func sharing(t *testing.T) (one, two *world) {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	origin, b := gittest.At(t, r.Origin()), bustest.Start(t)
	one = worldOn(t, origin, repotest.Replica(t, origin.Dir, b.Objects), b)
	two = worldOn(t, origin, repotest.Replica(t, origin.Dir, b.Objects), b)
	return one, two
}

// ofIntent makes a command one for another intent.
func ofIntent(intent forge.IntentID, c forge.Command) forge.Command {
	c.To.Intent, c.Intent.ID, c.Task.IntentID = intent, intent, intent
	c.Task.ID = forge.NewTaskID(intent, 1)
	c.Attempt.Task = c.Task.ID
	return c
}

// leaves has an intent leave commits, a conversation and a transcript.
func (w *world) leaves(intents ...forge.IntentID) {
	w.t.Helper()
	for _, id := range intents {
		w.implemented(ofIntent(id, recipe(1, "write", "FILE", string(id)+".txt", "TEXT", "x")))
		session := objects.Name{Project: repotest.Project, Intent: id, Task: forge.NewTaskID(id, 1), Kind: objects.Session}
		transcript := objects.TranscriptName(
			forge.Key{Project: repotest.Project, Intent: id}, forge.Attempt{Task: session.Task, Step: forge.StepImplement, Number: 1},
		)
		for _, name := range []objects.Name{session, transcript} {
			if err := w.bus.Objects.Put(w.t.Context(), name, bytes.NewReader([]byte("hello"))); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// became journals what has become of an intent.
func (w *world) became(id forge.IntentID, status forge.Status, ended time.Time, open ...forge.Attempt) {
	w.t.Helper()
	key := forge.Key{Project: repotest.Project, Intent: id}
	s := forge.Summary{Key: key, Status: status, UpdatedAt: ended, RunSummary: forge.RunSummary{Open: open}}
	if !status.Ended() {
		s.Tasks = []forge.TaskSummary{{ID: forge.NewTaskID(id, 1), Status: forge.TaskImplementing}}
	}
	w.journal(key, forge.Record{Summary: s})
}

func (w *world) clean(req requests.CleanRequest) requests.Cleaned {
	w.t.Helper()
	got, err := w.imp.clean(w.t.Context(), repotest.Project, req)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// left lists the intents of which the origin or the object store has something.
func (w *world) left() []string {
	w.t.Helper()
	var list []string
	for _, ref := range w.refs("") {
		id := strings.Split(ref, "/")[2]
		if id == "_heads" {
			id = string(forge.TaskID(strings.Split(ref, "/")[3]).Intent())
		}
		list = append(list, id)
	}
	objects, err := w.bus.Objects.List(w.t.Context(), objects.Name{Project: repotest.Project})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range objects {
		list = append(list, string(o.Intent))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// fetches has the replica's clone have an intent's commits.
func (w *world) fetches(id forge.IntentID) {
	w.t.Helper()
	if err := w.repository().Store.FetchIntent(w.t.Context(), git.Name(id)); err != nil {
		w.t.Fatal(err)
	}
}

// has lists the intents of which this replica has something.
func (w *world) has() []string {
	w.t.Helper()
	here, err := w.repository().Store.HiddenHere(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for name := range here {
		list = append(list, string(name))
	}
	slices.Sort(list)
	return list
}

var longAgo = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// serves has an implementer answer people, once it has seen to what its former life left.
func (w *world) serves(replica forge.ReplicaID) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	worker := w.worker()
	worker.Shared, worker.Replica = true, replica
	ready := make(chan struct{})
	w.imp.ready = func() { close(ready) }
	w.background(func(ctx context.Context) error { return w.imp.Run(ctx, worker) })
	if err := w.set.FollowCleaned(ctx, w.bus); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(cancel)
	wait.For(w.t, ready)
}

// A person asks, one of two replicas does it, and the other one lets go of what it has.
func TestClean(t *testing.T) {
	t.Parallel()
	one, two := sharing(t)
	one.leaves("fix", "fix-001", "other", "failed")
	two.leaves("more")
	for _, id := range []forge.IntentID{"fix", "fix-001", "other", "failed", "more"} { // each has commits of all
		one.fetches(id)
		two.fetches(id)
		one.became(id, forge.StatusExecuting, longAgo)
	}
	one.serves("w1")
	two.serves("w2")
	one.became("fix", forge.StatusDone, longAgo)
	one.became("more", forge.StatusCancelled, longAgo)
	one.became("fix-001", forge.StatusRejected, time.Now())
	one.became("failed", forge.StatusBlocked, longAgo)
	clean := func(req requests.CleanRequest) (got requests.Cleaned) {
		wait.Until(t, "somebody answers", func() bool {
			var err error
			got, err = one.bus.Leftovers.Clean(t.Context(), repotest.Project, "ada", req)
			if err != nil && !errors.Is(err, requests.ErrNoImplementer) {
				t.Fatal(err)
			}
			return err == nil
		})
		for i := range got.Intents { // the rest is the change, whose size depends on the names of commits
			if got.Intents[i].Bytes <= 10 {
				t.Errorf("the change is not counted: %+v", got.Intents[i])
			}
			got.Intents[i].Bytes = 10
		}
		return got
	}
	req := requests.CleanRequest{Before: longAgo.Add(time.Hour), DryRun: true}
	found := func(removed bool) requests.Cleaned {
		one := requests.CleanedIntent{ID: "fix", Status: forge.StatusDone, EndedAt: longAgo, Refs: 2, Sessions: 1, Transcripts: 1, Bytes: 10, Removed: removed}
		other := one
		other.ID, other.Status = "more", forge.StatusCancelled
		return requests.Cleaned{Intents: []requests.CleanedIntent{one, other}}
	}
	if diff := cmp.Diff(found(false), clean(req)); diff != "" || len(one.left()) != 5 {
		t.Errorf("a dry run: %s, left %q", diff, one.left())
	}
	req.DryRun = false
	if diff := cmp.Diff(found(true), clean(req)); diff != "" {
		t.Error(diff)
	}
	for _, id := range []forge.IntentID{"fix", "more"} {
		stored, err := one.bus.Objects.List(t.Context(), objects.Name{Project: repotest.Project, Intent: id})
		if err != nil || len(stored) > 0 {
			t.Errorf("of %s are stored %v: %v", id, stored, err)
		}
	}
	want := []string{"failed", "fix-001", "other"}
	if diff := cmp.Diff(want, one.left()); diff != "" {
		t.Error(diff)
	}
	for _, w := range []*world{one, two} {
		wait.Until(t, "a replica lets go", func() bool { return slices.Equal(want, w.has()) })
	}
	if got := clean(req); len(got.Intents)+len(got.Kept) > 0 {
		t.Errorf("it is cleaned twice: %+v", got)
	}
	if _, err := one.bus.Journal.Summary(t.Context(), forge.Key{Project: repotest.Project, Intent: "fix"}); err != nil {
		t.Errorf("the journal: %v", err)
	}
	if _, err := one.bus.Leftovers.Clean(t.Context(), "bank", "ada", req); err == nil || !strings.Contains(err.Error(), `project "bank" is not served here`) {
		t.Errorf("got %v", err)
	}
}

// A replica that did not hear of it lets go when it starts.
func TestReplicaLetsGoAtItsStart(t *testing.T) {
	t.Parallel()
	one, two := sharing(t)
	one.leaves("fix", "other", "gone")
	for _, id := range []forge.IntentID{"fix", "other", "gone"} {
		two.fetches(id)
	}
	one.became("fix", forge.StatusDone, longAgo)
	one.became("other", forge.StatusExecuting, longAgo)
	one.clean(requests.CleanRequest{})
	if err := one.repository().Store.Sweep(t.Context(), "gone"); err != nil { // by somebody, of an intent that nobody knows
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := two.set.FollowCleaned(ctx, two.bus); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gone", "other"}, two.has()); diff != "" {
		t.Error(diff)
	}
}

// What may still be needed is kept, with the reason.
func TestCleanKeeps(t *testing.T) {
	t.Parallel()
	w, _ := sharing(t)
	w.leaves("fix", "other")
	w.became("other", forge.StatusDone, longAgo)
	key := forge.Key{Project: repotest.Project, Intent: "fix"}
	attempt := forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1, Claim: 1}
	merges := func() {
		w.want(forge.Command{BudgetUSD: 5, Attempt: forge.Attempt{Task: "fix-001", Step: forge.StepMerge, Number: 1, Claim: 1}})
	}
	var lease *buswork.Lease
	for _, c := range []struct {
		status forge.Status
		open   []forge.Attempt
		begin  func()
		want   string
	}{
		{forge.StatusBlocked, nil, nil, "is blocked and can be retried: cancel it first"},
		{forge.StatusError, nil, nil, "is error and can be retried: cancel it first"},
		{forge.StatusExecuting, nil, nil, "is executing: it has not ended"},
		{forge.StatusProposed, nil, nil, "is proposed: it has not ended"},
		{forge.StatusCancelled, []forge.Attempt{attempt}, nil, "is cancelled, but its implement has not ended yet: try again in a moment"},
		{forge.StatusCancelled, nil, merges, "is cancelled, but its merge is just ending: try again in half a minute"},
		{forge.StatusCancelled, nil, func() {
			w.want()
			var err error
			job := &buswork.Job{Command: forge.Command{BudgetUSD: 5, To: key, Attempt: attempt}}
			lease, err = w.bus.Leases.Acquire(t.Context(), job, buswork.LeaseHolder{Replica: "w9", Life: "1"})
			if err != nil {
				t.Fatal(err)
			}
		}, "is cancelled, but its implement is just ending: try again in half a minute"},
	} {
		w.became("fix", c.status, longAgo, c.open...)
		if c.begin != nil {
			c.begin()
		}
		got := w.clean(requests.CleanRequest{Intents: []forge.IntentID{"fix", "nobody"}})
		kept := []requests.KeptIntent{{ID: "fix", Reason: c.want}, {ID: "nobody", Reason: "is no intent of this project"}}
		want := requests.Cleaned{Intents: []requests.CleanedIntent{}, Kept: kept}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.status, diff)
		}
		if diff := cmp.Diff([]string{"fix", "other"}, w.left()); diff != "" {
			t.Errorf("%s: %s", c.status, diff)
		}
	}
	lease.Release(t.Context())
	if got := w.clean(requests.CleanRequest{}); len(got.Kept) > 0 || len(w.left()) > 0 {
		t.Errorf("got %+v, left %q", got, w.left())
	}
}

// A failed intent that somebody tried to clean is retried, in another replica, and is merged.
// Of one that was given up and cleaned, nobody has the commits any more.
func TestRetryAfterClean(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	one, two := sharing(t)
	first := one.implemented(recipe(1, "write", "FILE", "new.txt", "TEXT", "x"))
	one.became("fix", forge.StatusBlocked, longAgo)
	one.clean(requests.CleanRequest{Intents: []forge.IntentID{"fix"}})
	one.clean(requests.CleanRequest{})
	retried := recipe(2, "write", "FILE", "more.txt", "TEXT", "y")
	retried.Task.Base, retried.Task.Head = first.Base, first.Head
	second := two.implemented(retried)
	if second.Commits != 2 {
		t.Fatalf("got %+v", second)
	}
	if got := two.merges(merge(1, two.rebased(second))); got.Outcome != forge.MergeDone || two.repo.Show("main", "new.txt") != "x" {
		t.Errorf("got %+v", got)
	}

	other := one.implemented(ofIntent("other", recipe(1, "write", "FILE", "other.txt", "TEXT", "x")))
	one.became("other", forge.StatusCancelled, longAgo)
	one.clean(requests.CleanRequest{Intents: []forge.IntentID{"other"}})
	late := ofIntent("other", recipe(2, "write", "FILE", "late.txt", "TEXT", "y"))
	late.Task.Base, late.Task.Head = other.Base, other.Head
	fails(t, two.implement(late), forge.FailRepository, "not found")
	fresh := ofIntent("other", recipe(3, "write", "FILE", "fresh.txt", "TEXT", "y"))
	if im := two.implemented(fresh); im.Commits != 1 {
		t.Errorf("afresh: %+v", im)
	}
}

// What a request removed that was cut off stays removed, and the next one, to another
// replica, removes the rest.
func TestCleanGoesOn(t *testing.T) {
	t.Parallel()
	one, two := sharing(t)
	one.leaves("fix", "other")
	one.became("fix", forge.StatusDone, longAgo)
	one.became("other", forge.StatusExecuting, longAgo)
	one.crashAt("swept")
	dies(t, func() { _, _ = one.imp.clean(t.Context(), repotest.Project, requests.CleanRequest{}) })
	if len(one.refs("fix")) != 0 || len(one.left()) != 2 {
		t.Fatalf("it did not stop there: %q", one.left())
	}
	got := two.clean(requests.CleanRequest{})
	if len(got.Intents) != 1 || got.Intents[0].Refs != 0 || got.Intents[0].Sessions != 1 || !got.Intents[0].Removed {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"other"}, one.left()); diff != "" {
		t.Error(diff)
	}
}

// Two replicas clean the same intents at the same time, while work on another one goes on.
func TestTwoClean(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	one, two := sharing(t)
	ids := []forge.IntentID{"a", "b", "c", "d"}
	one.leaves(ids...)
	for _, id := range ids {
		one.became(id, forge.StatusDone, longAgo)
	}
	one.became("other", forge.StatusExecuting, longAgo)
	type outcome struct {
		got requests.Cleaned
		err error
	}
	outcomes := make(chan outcome, 2)
	for _, w := range []*world{one, two} {
		go func() {
			got, err := w.imp.clean(t.Context(), repotest.Project, requests.CleanRequest{})
			outcomes <- outcome{got, err}
		}()
	}
	im := two.implemented(ofIntent("other", recipe(1, "write", "FILE", "other.txt", "TEXT", "x")))
	for range 2 {
		if o := <-outcomes; o.err != nil || len(o.got.Kept) > 0 {
			t.Errorf("got %+v, %v", o.got, o.err)
		}
	}
	if diff := cmp.Diff([]string{"other"}, one.left()); diff != "" || len(one.refs(im.Head[:12])) != 1 {
		t.Errorf("%s, kept %q", diff, one.refs(""))
	}
}
