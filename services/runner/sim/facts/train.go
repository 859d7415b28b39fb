package facts

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// Train is read from the journal of a project: which changes stopped when they
// were tried last, and on top of what.
//
// It knows requests by their task and number, and nothing of the cars that the
// rules keep. That a change stopped says nothing about it anywhere else, so it
// may be in another stack, or in the same one on another base.
type Train struct {
	// trials are the newest trials of requests that have not been merged.
	trials map[string]*trial
	// Longest is the largest number of changes that one was tried on top of.
	Longest int
	// Largest is the largest number of changes that one was to decide about.
	Largest int
	// trees keeps the trees that passed or failed in trials.
	trees trees
	// failed are the batches that did not pass as the record says, by the trial
	// and what was ahead: it does not ask for the same ones again.
	failed map[string]bool
}

// trial is one of a request. The next one of the same request takes its place.
type trial struct {
	claim   int
	ahead   []string
	stopped bool
	// failed counts the trials on top of the same changes whose verify failed, since one passed.
	failed int
	// ended says that there is a result.
	ended bool
	// batch is how many others were tried with it.
	batch int
}

// Check returns an error if a decision of the project puts a change on top of one that stopped
// right there or is in doubt, has it tried a third time where verify failed twice, has something
// tried although the project is paused, or tells a merge of a pass that was not where it says.
func (t *Train) Check(rec *forge.Record) error {
	if err := t.trees.check(rec); err != nil {
		return err
	}
	if t.trials == nil {
		t.trials, t.failed = map[string]*trial{}, map[string]bool{}
	}
	clear(t.failed)
	for i := range rec.Events {
		if r := forge.As[*forge.Result](rec.Events[i].Message); r != nil {
			t.learn(r)
		}
	}
	for i := range rec.Effects.Commands {
		c := &rec.Effects.Commands[i]
		in := c.Merge()
		if !in.Trial {
			continue
		}
		if rec.Summary.Waiting == forge.WaitingPaused {
			return fmt.Errorf("%s is tried although the project is paused", c.Attempt)
		}
		n := &trial{claim: c.Attempt.Claim, batch: in.Batch}
		// Where changes gather, what is ahead may have been another stack and
		// be the same again without any trial in between.
		one := in.Change.Batch < 2
		for j := range in.Ahead {
			ahead := request(in.Ahead[j].Task, in.Ahead[j].Number)
			before := t.trials[ahead]
			if one && before != nil && (before.stopped || before.failed > 0 && !before.ended) && slices.Equal(before.ahead, n.ahead) {
				return fmt.Errorf("%s is tried on top of %s, which has failed there", c.Attempt, in.Ahead[j].Task)
			}
			n.ahead = append(n.ahead, ahead)
		}
		if err := t.rides(c, n); err != nil {
			return err
		}
		name := request(c.Attempt.Task, c.Attempt.Number)
		if before := t.trials[name]; one && before != nil && slices.Equal(before.ahead, n.ahead) {
			if n.failed = before.failed; n.failed > 1 {
				return fmt.Errorf("%s is tried once more where verify failed %d times", c.Attempt, n.failed)
			}
		}
		t.trials[name] = n
		t.Longest, t.Largest = max(t.Longest, len(n.ahead)), max(t.Largest, in.Batch+1)
	}
	return nil
}

// learn records how a trial ended, or that something was merged. Then those
// behind it stand on the base branch with what is left ahead of them, and what
// is known of others is about a base that is gone.
func (t *Train) learn(r *forge.Result) {
	in, name := cmp.Or(forge.As[*forge.MergeResult](r.Output), &forge.MergeResult{}), request(r.Attempt.Task, r.Attempt.Number)
	if in.Outcome == forge.MergeDone {
		for key, n := range t.trials {
			if len(n.ahead) == 0 || n.ahead[0] != name {
				delete(t.trials, key)
			} else {
				n.ahead = n.ahead[1:]
			}
		}
		return
	}
	if in.Outcome == forge.MergeOvertaken { // on the tip of now the others may pass, and they need not be asked in the same order
		clear(t.trials)
	}
	if in.Outcome == forge.MergeRefused { // it passed on the base branch since: what its trial said is older
		delete(t.trials, name)
	}
	if in.Outcome == forge.MergeDirty { // of another worker it may be merged yet, when no stack stands on it any more
		maps.DeleteFunc(t.trials, func(_ string, n *trial) bool { return slices.Contains(n.ahead, name) })
	}
	f, n := in.Candidate, t.trials[name]
	if n == nil || n.claim != r.Attempt.Claim {
		return
	}
	n.ended = n.ended || !r.IsStart()
	if n.batch > 0 { // it says nothing of any one of them
		if in.Outcome == forge.MergeTried && f != nil && verdict.Failing(f.Verify) != "" {
			t.failed[batchOf(name, n)] = true
		}
		return
	}
	if in.Outcome == forge.MergeTried && f != nil {
		n.stopped = len(f.Conflicts) > 0 || verdict.Failing(f.Verify) != ""
		if verdict.Failing(f.Verify) != "" {
			n.failed++
		} else {
			n.failed = 0
		}
	}
}

// rides returns an error if a change is to be verified together with others although it has checks
// of its own, or if the very batch has failed there. It looks at the decision alone; which of a
// batch is at fault is for the rules.
func (t *Train) rides(c *forge.Command, n *trial) error {
	in := c.Merge()
	if in.Batch == 0 {
		return nil
	}
	for _, r := range append(slices.Clone(in.Ahead[len(in.Ahead)-in.Batch:]), *in.Change) {
		if len(r.Checks) > 0 {
			return fmt.Errorf("%s is tried together with others, and %s has checks of its own", c.Attempt, r.Task)
		}
	}
	if t.failed[batchOf(request(c.Attempt.Task, c.Attempt.Number), n)] {
		return fmt.Errorf("%s is tried together with the same %d others as failed there", c.Attempt, in.Batch)
	}
	return nil
}

// Ride adds a change to those of a batch, as a worker reports them, and reports whether
// the batch goes on. Now and then it may not ride, or the worker mistakes it for another.
func Ride(r *forge.MergeResult, f *forge.Rebase, chance func(n int) bool) bool {
	if chance(20) {
		f.Guarded = []string{"verify runs it"}
	} else if chance(20) {
		f.PatchID = "patch-of-another"
	}
	r.Batch = append(r.Batch, *f)
	return len(f.Guarded) == 0
}

// batchOf names the batch of a trial, and what it was tried on.
func batchOf(name string, n *trial) string { return fmt.Sprint(name, n.batch, n.ahead) }

// request names a request to merge.
func request(task forge.TaskID, number int) string { return fmt.Sprint(task, "/", number) }

// IsAbout reports whether a trial found something of exactly this patch on this
// tree, which becomes that one by it.
func IsAbout(found *forge.Rebase, patch, base, tree string) bool {
	return found != nil && found.Verify != nil && found.PatchID == patch && found.BaseTree == base && found.Tree == tree
}

// FailedTwice returns the runs of a tree that are known of a change which
// failed twice in its trials.
func FailedTwice(tree string, found *forge.Rebase) []forge.CheckRun {
	if verdict.PassedBetween(found.Verify.Trials) != "" {
		return Runs(tree, "change-", "base+", "change-")
	}
	return Runs(tree, "change-", "change-")
}

// Possible returns those of the faults that a change may have which failed
// twice: not that of the base, where that passed in between.
func Possible(known []forge.CheckRun, ofBase string, faults []string) []string {
	return slices.DeleteFunc(faults, func(f string) bool { return f == ofBase && verdict.PassedBetween(known) != "" })
}

// Because returns the runs of a change of which the first one says why they
// failed. Where the base has passed between two failures that were known before,
// these are the first ones, in place of two failures and a run of the base.
func Because(why string, known, runs []forge.CheckRun) []forge.CheckRun {
	if verdict.PassedBetween(known) != "" {
		runs = append(slices.Clone(known), runs[3:]...)
	}
	runs[0].Output = why
	return runs
}

// Again returns the runs of a change that was unsteady before, and whether it passes in
// truth. It is so still, unless the check fails without it: a worker that asks finds out,
// one that does not sees a pass, of which why says that it is none. Where that pass is the
// last of enough after a single failure, it is one: a change is allowed to fail so seldom.
func Again(rng *rand.Rand, tree, why string, tried []forge.CheckRun) (runs []forge.CheckRun, passed bool) {
	switch rng.IntN(4) {
	case 0: // the pass is reported without its runs
		return nil, !verdict.Unsteady(append(slices.Clone(tried), Runs(tree, "change+")...))
	case 1:
		runs = Runs(tree, "change+", "base+", "base+", "base+")
		if passed = !verdict.Unsteady(append(slices.Clone(tried), runs...)); !passed {
			runs[0].Output = why
		}
		return runs, passed
	case 2:
		return Runs(tree, "change+", "change+", "change+"), true
	}
	return Runs(tree, "change+", "base+", "base-"), true
}

// Runs returns runs of verify commands on a tree, of each a word for what was verified, such as
// "change" or "base", and how it ended: + or -, as in "change-".
func Runs(tree string, list ...string) (runs []forge.CheckRun) {
	for _, s := range list {
		run := forge.CheckRun{Name: s[:len(s)-1], Tree: tree, Passed: s[len(s)-1] == '+'}
		if !run.Passed {
			run.Command = "make test"
		}
		runs = append(runs, run)
	}
	return runs
}
