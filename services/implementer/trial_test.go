package implementer

import (
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// readyAs makes a change for the one task of an intent, and takes it to where it can be merged.
func (w *world) readyAs(id forge.IntentID, file, text string) forge.Command {
	w.t.Helper()
	as := func(c forge.Command) forge.Command {
		c.To.Intent, c.Intent.ID = id, id
		c.Attempt.Task, c.Task.ID, c.Task.IntentID = forge.NewTaskID(id, 1), forge.NewTaskID(id, 1), id
		return c
	}
	im := w.implemented(as(recipe(1, "write", "FILE", file, "TEXT", text)))
	c := as(command(forge.StepRebase, 1))
	c.Task.Base, c.Task.Head = im.Base, im.Head
	rb := forge.As[*forge.Rebase](w.imp.rebase(w.t.Context(), c, silent).Output)
	if rb == nil {
		w.t.Fatal("not rebased")
	}
	m := as(merge(1, rb))
	m.Merge().Change.Task = m.Attempt.Task
	return m
}

// tries has a change tried on top of others.
func (w *world) tries(c forge.Command, ahead ...forge.Command) *forge.MergeResult {
	w.t.Helper()
	in := c.Merge()
	in.Trial = true
	for _, a := range ahead {
		in.Ahead = append(in.Ahead, *a.Merge().Change)
	}
	c.Input = &in
	before := w.repo.Git("for-each-ref")
	got := w.merges(c)
	if after := w.repo.Git("for-each-ref"); got.Outcome != forge.MergeTried || after != before {
		w.t.Fatalf("a trial ended as %+v, refs\n%s\nwere\n%s", got, after, before)
	}
	return got
}

// found is a merge that may take the finding of a trial.
func found(c forge.Command, r *forge.MergeResult) forge.Command {
	in := c.Merge()
	in.Tried, in.In = r.Candidate, forge.ExecutorNamespaces
	c.Attempt.Claim, c.Input = 2, &in
	return c
}

// What a trial found counts where the trees are the same, whatever the commits:
// then nothing is run again.
func TestMergeTakesWhatATrialFound(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "true", nil)
	a, b := w.readyAs("one", "one.txt", "1"), w.readyAs("two", "two.txt", "2")
	tried := w.tries(b, a)
	if f := tried.Candidate; f == nil || f.Verify == nil || !f.Verify.Passed || f.BaseTree != a.Merge().Change.Tree {
		t.Fatalf("found %+v", f)
	}
	a.Merge().Change.Approver = "ada" // came late: another commit, the same tree
	w.merges(a)
	before := runs()
	c := found(b, tried)
	w.want(c)
	r := w.imp.merge(t.Context(), c, silent)
	got := forge.As[*forge.MergeResult](r.Output)
	if got == nil || got.Outcome != forge.MergeDone || got.Tree != tried.Candidate.Tree || got.Parent == tried.Candidate.Base {
		t.Fatalf("got %+v, %+v", got, r.Failure())
	}
	if runs() != before || r.Executor != forge.ExecutorNamespaces {
		t.Errorf("verified %d times more, in %q", runs()-before, r.Executor)
	}
	if w.repo.Show("main", "one.txt") != "1" || w.repo.Show("main", "two.txt") != "2" || w.repo.Head("main") != git.OID(got.Commit) {
		t.Error("a change got lost")
	}
}

// What failed twice in trials on exactly what would land is not run a third time
// by the merge, which looks whose fault that is, and neither is what it lands
// on, if that passed in between. Otherwise the merge finds that out by itself.
func TestMergeKnowsWhatFailedTwice(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, c := range map[string]struct {
		between func(w *world, f *forge.Rebase)
		runs    int
	}{
		"the same tree":       {func(*world, *forge.Rebase) {}, 2},
		"the base passed":     {func(_ *world, f *forge.Rebase) { insertBase(f, f.BaseTree) }, 1},
		"another base passed": {func(_ *world, f *forge.Rebase) { insertBase(f, f.Tree) }, 4},
		"a person pushed":     {func(w *world, _ *forge.Rebase) { w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"}) }, 4},
		"it failed once":      {func(_ *world, f *forge.Rebase) { f.Verify.Trials = f.Verify.Trials[:1] }, 4},
		"one of it passed":    {func(_ *world, f *forge.Rebase) { f.Verify.Trials[1].Passed = true }, 4},
		"one of another":      {func(_ *world, f *forge.Rebase) { f.Verify.Trials[0].Tree = f.BaseTree }, 4},
		"another patch":       {func(_ *world, f *forge.Rebase) { f.PatchID = "another" }, 4},
		"another tree":        {func(_ *world, f *forge.Rebase) { f.Tree = f.BaseTree }, 4},
		"it says it passed":   {func(_ *world, f *forge.Rebase) { f.Verify.Passed = true; f.Verify.Trials = nil; f.Tree = f.BaseTree }, 4},
		"nothing known of it": {func(_ *world, f *forge.Rebase) { f.Verify = nil; f.Tree = f.BaseTree }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := counted(t, "! test -e one.txt || ! test -e two.txt", nil)
			a, b := w.readyAs("one", "one.txt", "1"), w.readyAs("two", "two.txt", "2")
			first, second := w.tries(b, a).Candidate, w.tries(b, a).Candidate
			known := verdict.Twice(verdict.TrialOf(first), nil, second)
			if known == nil {
				t.Fatalf("%+v, %+v", first, second)
			}
			w.merges(a)
			c.between(w, known)
			before := runs()
			got := w.merges(found(b, &forge.MergeResult{Candidate: known}))
			want := "change- change- base+ alone+"
			if c.runs == 1 {
				want = "change- base+ change- alone+"
			}
			if got.Outcome != forge.MergeVerifyFailed || trialsOf(got.Verify) != want || runs() != before+c.runs {
				t.Errorf("got %+v after %d runs", got, runs()-before)
			}
			if fault := verdict.Blame(got.Verify, got.Candidate.Tree); fault != verdict.FaultOfBoth {
				t.Errorf("blamed is %q", fault)
			}
		})
	}
}

// insertBase has the base of a change pass between the two failures of it.
func insertBase(f *forge.Rebase, tree string) {
	f.Verify.Trials = slices.Insert(f.Verify.Trials, 1, forge.CheckRun{Name: verdict.TrialBase, Tree: tree, Passed: true})
}

// In every other case the change is verified where it is merged.
func TestMergeVerifiesWhatNoTrialFound(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, between := range map[string]func(w *world, a forge.Command, found *forge.Rebase){
		"a person pushed": func(w *world, a forge.Command, _ *forge.Rebase) {
			w.merges(a)
			w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
		},
		"a person pushed before": func(w *world, a forge.Command, _ *forge.Rebase) {
			w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
			w.merges(a)
		},
		"what was ahead is not merged": func(w *world, _ forge.Command, _ *forge.Rebase) {
			w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
		},
		"another patch":         func(w *world, a forge.Command, f *forge.Rebase) { w.merges(a); f.PatchID = "another" },
		"another tree":          func(w *world, a forge.Command, f *forge.Rebase) { w.merges(a); f.Tree = f.BaseTree },
		"nothing known of base": func(w *world, a forge.Command, f *forge.Rebase) { w.merges(a); f.BaseTree = "" },
		"it did not pass":       func(w *world, a forge.Command, f *forge.Rebase) { w.merges(a); f.Verify.Passed = false },
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := counted(t, "true", nil)
			a, b := w.readyAs("one", "one.txt", "1"), w.readyAs("two", "two.txt", "2")
			tried := w.tries(b, a)
			between(w, a, tried.Candidate)
			w.forgets() // it is merged by another worker than tried it
			before := runs()
			if got := w.merges(found(b, tried)); got.Outcome != forge.MergeDone || runs() != before+1 {
				t.Errorf("got %+v after %d runs", got, runs()-before)
			}
		})
	}
}

// A trial says what is in the way, and looks for nobody's fault: whose it is, the merge finds out.
func TestTrialsThatStop(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "! test -e one.txt || ! test -e two.txt", nil)
	a, b := w.readyAs("one", "one.txt", "1"), w.readyAs("two", "two.txt", "2")
	before := runs()
	if f := w.tries(b, a).Candidate; f == nil || f.Verify == nil || f.Verify.Passed || len(f.Verify.Trials) > 0 || runs() != before+1 {
		t.Errorf("a semantic conflict: %+v after %d runs", f, runs()-before)
	}
	before = runs()
	c := w.readyAs("three", "a.txt", "3") // appends
	d := w.readyAs("four", "a.txt", "4")
	before += 2
	if f := w.tries(d, c).Candidate; f == nil || len(f.Conflicts) != 1 || runs() != before {
		t.Errorf("a conflict: %+v after %d runs", f, runs()-before)
	}
	if r := w.tries(b, c, d); r.Candidate != nil || runs() != before {
		t.Errorf("the changes ahead conflict: %+v after %d runs", r.Candidate, runs()-before)
	}
	if got := w.merges(a); got.Outcome != forge.MergeDone {
		t.Fatal(got)
	}
	if got := w.merges(found(b, &forge.MergeResult{Candidate: nil})); got.Outcome != forge.MergeVerifyFailed || len(got.Verify.Trials) == 0 {
		t.Errorf("its merge: %+v", got)
	}
}

// The configuration of a trial is that of the changes ahead.
func TestTrialUsesTheConfigurationAhead(t *testing.T) {
	t.Parallel()
	w, _ := counted(t, "true", nil)
	a, b := w.readyAs("one", "pfl-forge.yaml", "max_review_retries: 1"), w.readyAs("two", "two.txt", "BROKEN")
	stricter := w.readyAs("three", "pfl-forge.yaml", "timeouts: {verify: nonsense}")
	w.want(b)
	in := b.Merge()
	in.Trial, in.Ahead = true, []forge.QueueMerge{*stricter.Merge().Change}
	c := b
	c.Input = &in
	fails(t, w.imp.merge(t.Context(), c, silent), forge.FailConfig, "timeouts.verify")
	if f := w.tries(b, a).Candidate; f == nil || f.Verify == nil || f.Verify.Passed {
		t.Errorf("got %+v", f)
	}
}

// A trial that nobody waits for runs nothing.
func TestTrialIsCancelled(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "true", nil)
	b := w.readyAs("two", "two.txt", "2")
	before := runs()
	in := b.Merge()
	in.Trial = true
	b.Input = &in
	w.want()
	fails(t, w.imp.merge(t.Context(), b, silent), forge.FailKilled, "cancelled")
	if runs() != before {
		t.Error("it ran something")
	}
}

// What is merged on a trial's word is stated of the commit that lands, also
// when the process dies in between.
func TestFindingIsStatedOfWhatLands(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"", "kept", "moved"} {
		w, signers, others := signedWorld(t)
		ahead := w.readyAs("one", "one.txt", "1")
		rb := w.ready("new.txt", "x")
		tried := w.tries(proven(rb, others(rb)), ahead)
		ahead.Merge().Change.Approver = "ada"
		w.merges(ahead)
		c := found(proven(rb, others(rb)), tried)
		if at != "" {
			w.crashAt(at)
			w.want(c)
			dies(t, func() { w.imp.merge(t.Context(), c, silent) })
			w.imp.crash = func(string) {}
		}
		if got := w.merges(c); got.Outcome != forge.MergeDone {
			t.Fatalf("%q: got %+v", at, got)
		}
		w.check(w.repo.Head("main"), signers)
	}
}

// batched is a trial of changes that are verified together, the last one of them by its own tree.
func (w *world) batched(c forge.Command, riders ...forge.Command) *forge.MergeResult {
	w.t.Helper()
	in := c.Merge()
	in.Batch = len(riders)
	c.Input = &in
	return w.tries(c, riders...)
}

// rode is a merge that may take what its batch found, as the rules hand it on.
func rode(c forge.Command, f forge.Rebase, last *forge.Rebase) forge.Command {
	f.Together, f.Verify = last.Tree, last.Verify
	return found(c, &forge.MergeResult{Candidate: &f})
}

// batches is the configuration of a project that has chosen them.
const batches = "merge_queue: {batch: 8}\n"

// One run decides about all changes of a batch, and each lands by itself, with
// a statement that says so.
func TestBatchIsVerifiedOnce(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "true", nil, batches)
	a, b, c := w.readyAs("one", "one.txt", "1"), w.readyAs("two", "two.txt", "2"), w.readyAs("three", "three.txt", "3")
	before := runs()
	tried := w.batched(c, a, b)
	if f := tried.Candidate; f == nil || f.Verify == nil || !f.Verify.Passed || len(tried.Batch) != 2 || runs() != before+1 {
		t.Fatalf("found %+v after %d runs", tried, runs()-before)
	}
	if tried.Batch[1].BaseTree != tried.Batch[0].Tree || tried.Candidate.BaseTree != tried.Batch[1].Tree || tried.Batch[0].Verify != nil {
		t.Fatalf("what rode: %+v", tried.Batch)
	}
	w.forgets()
	a.Merge().Change.Unverified = true // so that its own verify before the review does not stand for it
	for i, m := range []forge.Command{rode(a, tried.Batch[0], tried.Candidate), rode(b, tried.Batch[1], tried.Candidate), found(c, tried)} {
		if got := w.merges(m); got.Outcome != forge.MergeDone || runs() != before+1 {
			t.Errorf("%d: got %+v after %d runs", i, got, runs()-before)
		}
	}
}

// What rode is verified by itself where anything is other than in the trial, or
// the configuration on the tip knows no batches.
func TestWhatRodeIsVerified(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	for name, test := range map[string]struct {
		config  string
		between func(w *world)
		alter   func(f *forge.Rebase)
	}{
		"a person pushed":    {batches, func(w *world) { w.repo.Commit("another", map[string]string{"b.txt": "c\n"}) }, nil},
		"of another change":  {batches, nil, func(f *forge.Rebase) { f.PatchID = "another" }},
		"another tree":       {batches, nil, func(f *forge.Rebase) { f.Tree = f.BaseTree }},
		"no batches are on":  {"", nil, nil},
		"the batch is red":   {batches, nil, func(f *forge.Rebase) { f.Verify = &forge.VerifyReport{Command: "make"} }},
		"one is a whole one": {"merge_queue: {batch: 1}\n", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := counted(t, "true", nil, test.config)
			a, b := w.readyAs("one", "one.txt", "1"), w.readyAs("two", "two.txt", "2")
			tried := w.batched(b, a)
			m := rode(a, tried.Batch[0], tried.Candidate)
			in := m.Merge()
			in.Change.Unverified = true
			if test.between != nil {
				test.between(w)
			}
			if test.alter != nil {
				test.alter(in.Tried)
			}
			w.forgets()
			before := runs()
			if got := w.merges(m); got.Outcome != forge.MergeDone || runs() != before+1 {
				t.Errorf("got %+v after %d runs", got, runs()-before)
			}
		})
	}
}

// A change that alters what verify goes by is verified with no other, wherever in the batch
// it is: neither is one that does not fit. Then nothing runs, and the worker says which one.
func TestWhatMayNotRide(t *testing.T) {
	t.Parallel()
	w, runs := counted(t, "sh check.sh", map[string]string{"check.sh": "true\n"}, batches)
	a, b := w.readyAs("one", "one.txt", "1"), w.readyAs("two", "two.txt", "2")
	lax, own, clash := w.readyAs("three", "check.sh", "exit 0"), w.readyAs("four", "pfl-forge.yaml", "max_review_retries: 1"), w.readyAs("five", "one.txt", "5")
	kept := w.readyAs("six", ".envrc", "x=1")
	before := runs()
	for name, c := range map[string]forge.Command{"a file that verify runs": lax, "the configuration": own, "a protected path": kept} {
		if r := w.batched(c, a); len(r.Batch) != 1 || len(r.Batch[0].Guarded) > 0 || len(r.Candidate.Guarded) == 0 || r.Candidate.Verify != nil {
			t.Errorf("%s as the last one: %+v", name, r)
		}
		if r := w.batched(b, a, c); len(r.Batch) != 2 || len(r.Batch[1].Guarded) == 0 || r.Candidate != nil {
			t.Errorf("%s before the last one: %+v", name, r)
		}
	}
	if r := w.batched(b, a, clash); len(r.Batch) != 2 || len(r.Batch[1].Conflicts) != 1 || r.Candidate != nil {
		t.Errorf("one that does not fit: %+v", r)
	}
	if runs() != before {
		t.Errorf("verified %d times", runs()-before)
	}
	in := b.Merge()
	in.Trial, in.Batch = true, 1
	b.Input = &in
	w.want(b)
	fails(t, w.imp.merge(t.Context(), b, silent), forge.FailInvalidOutput, "batch")
}

// What rode is stated as what it is: the statement names the tree that passed,
// and still proves the commit that lands.
func TestWhatRodeIsStated(t *testing.T) {
	t.Parallel()
	w, signers, others := signedWorld(t)
	w.repo.Commit("batches", map[string]string{"pfl-forge.yaml": settings + batches})
	rb, last := w.ready("new.txt", "x"), w.readyAs("two", "two.txt", "2")
	a := proven(rb, others(rb))
	a.Merge().Change.Unverified = true
	tried := w.batched(last, a)
	w.forgets()
	if got := w.merges(rode(a, tried.Batch[0], tried.Candidate)); got.Outcome != forge.MergeDone {
		t.Fatalf("got %+v", got)
	}
	r := w.check(w.repo.Head("main"), signers)
	if !slices.ContainsFunc(r.Statements, func(s proof.Shown) bool {
		v, is := s.Predicate.(*proof.Verify)
		return is && v.Together == tried.Candidate.Tree
	}) {
		t.Errorf("nothing says so: %+v", r.Statements)
	}
}
