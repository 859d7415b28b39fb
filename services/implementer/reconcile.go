package implementer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// reconcile compares journal and repository at the start: merges on the base branch
// are reported, because the process that made them may have died before it could, and
// checkouts and refs of tasks that ended are removed.
func (i *Implementer) reconcile(ctx context.Context, r *jobs.Repository) error {
	if err := rescueAll(ctx, r); err != nil {
		return err
	}
	heads, err := r.Store.TaskHeads(ctx) // before it is known what there is: so of what is not known then, the journal is gone
	if err != nil {
		return err
	}
	summaries, err := i.bus.Journal.Summaries(ctx, r.Project)
	if err != nil {
		return err
	}
	open, known := map[forge.TaskID]bool{}, map[forge.IntentID]bool{}
	for n := range summaries {
		s := &summaries[n]
		known[s.Key.Intent] = true
		for _, t := range s.Tasks {
			open[t.ID] = t.Status != forge.TaskFailed && !s.Status.Ended()
		}
	}
	if err := r.RetireTasks(open); err != nil {
		return err
	}
	keep := func(_ forge.IntentID, task forge.TaskID) bool {
		is, mentioned := open[task]
		return is || !mentioned // it may have begun since
	}
	if err := r.SweepSessions(ctx, keep); err != nil {
		return err
	}
	all, err := r.Store.PendingMerges(ctx, "")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(l store.PendingMerge) bool { return !known[forge.IntentID(l.Intent)] })
	if err := i.report(ctx, r, all); err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(l store.PendingMerge) bool { return open[forge.TaskID(l.Task)] })
	i.forgetHeads(ctx, r, heads, open)
	return r.Store.Forget(ctx, all)
}

// forgetHeads deletes the heads of tasks that are not open. An error is only
// logged: a head that stays costs some time.
func (i *Implementer) forgetHeads(ctx context.Context, r *jobs.Repository, heads []objects.TaskHead, open map[forge.TaskID]bool) {
	var over []git.Name
	for _, h := range heads {
		if !open[forge.TaskID(h.Task)] {
			over = append(over, h.Task)
		}
	}
	if err := r.Store.Forget(ctx, nil, over...); err != nil && ctx.Err() == nil {
		i.log.WarnContext(ctx, "cannot forget the heads of tasks that ended", "project", r.Project, "error", err)
	}
}

// report publishes the merges that are on the base branch. The project ignores those that it knows.
func (i *Implementer) report(ctx context.Context, r *jobs.Repository, list []store.PendingMerge) error {
	if len(list) == 0 {
		return nil
	}
	tip, err := r.Tip(ctx)
	if err != nil {
		return err
	}
	for _, l := range list {
		on, err := isMerged(ctx, r, l, tip)
		if err != nil {
			return err
		}
		if !on {
			continue
		}
		fact, err := mergeResult(ctx, r, l)
		if err != nil {
			return err
		}
		// Claim 0 is nobody's, so the result is not taken for one that was published.
		err = i.bus.Results.Publish(ctx, forge.Result{
			To:        forge.Key{Project: r.Project, Intent: forge.IntentID(l.Intent)},
			Attempt:   forge.Attempt{Task: forge.TaskID(l.Task), Step: forge.StepMerge, Number: l.Number},
			Replica:   i.id,
			StartedAt: time.Now().UTC(),
			Output:    fact,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// release gives back the checkouts of tasks that ended, and the commits that this
// process kept for them.
func (i *Implementer) release(ctx context.Context, c live.Control) {
	r, err := i.repos.Get(c.To.Project)
	if err != nil {
		return // another process serves it
	}
	err = errors.Join(r.Release(ctx, c.To.Intent, c.Released...), i.releaseCommits(ctx, r, c))
	if err != nil && ctx.Err() == nil {
		i.log.WarnContext(ctx, "cannot give back what a task held; the next start does", "intent", c.To.String(), "error", err)
	}
}

// releaseCommits deletes the heads and pending merges that this process kept of released tasks.
func (i *Implementer) releaseCommits(ctx context.Context, r *jobs.Repository, c live.Control) error {
	heads, merges := i.takeKept(c)
	if len(merges) == 0 {
		return r.Store.Forget(ctx, nil, heads...)
	}
	unlock, err := r.Lock(ctx, mergeLock) // a merge that is under way comes first
	if err != nil {
		return err
	}
	defer unlock()
	summary, err := i.bus.Journal.Summary(ctx, c.To)
	if err != nil {
		return err
	}
	known := func(l store.PendingMerge) bool { return mergeKnown(&summary, l) }
	if len(slices.DeleteFunc(slices.Clone(merges), known)) > 0 { // one that failed may have been merged all the same, by whichever process
		all, err := r.Store.PendingMerges(ctx, git.Name(c.To.Intent))
		if err != nil {
			return err
		}
		merges = slices.DeleteFunc(all, func(l store.PendingMerge) bool { return !slices.Contains(heads, l.Task) })
		if err := i.report(ctx, r, slices.DeleteFunc(slices.Clone(merges), known)); err != nil {
			return err
		}
	}
	unlock() // the next merge need not wait for the origin
	return r.Store.Forget(ctx, merges, heads...)
}

// mergeKnown reports whether the merge of a task is known: tasks that are not
// done are in the summary.
func mergeKnown(s *forge.Summary, l store.PendingMerge) bool {
	return !slices.ContainsFunc(s.Tasks, func(t forge.TaskSummary) bool { return t.ID == forge.TaskID(l.Task) })
}

// forgetNamesakes deletes merges with the name of a task that was never
// implemented: they belong to an intent whose journal is gone.
func (i *Implementer) forgetNamesakes(ctx context.Context, j *jobs.Job) error {
	if j.Command.Attempt.Number > 1 {
		return nil
	}
	all, err := j.Store.MergesOf(ctx, j.Intent(), j.Task())
	if err != nil {
		return err
	}
	return j.Store.Forget(ctx, all)
}

// taskKey names a task among all projects.
type taskKey struct {
	project forge.ProjectID
	task    forge.TaskID
}

// recordKept remembers that this process kept the head of a job's task, and merges of it.
func (i *Implementer) recordKept(j *jobs.Job, merges ...store.PendingMerge) {
	i.mu.Lock()
	defer i.mu.Unlock()
	k := taskKey{j.Command.To.Project, j.Command.Attempt.Task}
	kept := i.kept[k]
	for _, l := range merges {
		l.Proofs = "" // they stay
		if !slices.Contains(kept, l) {
			kept = append(kept, l)
		}
	}
	i.kept[k] = kept
}

// takeKept returns once what this process kept of released tasks: of which it
// kept the head, and merges.
func (i *Implementer) takeKept(c live.Control) (heads []git.Name, merges []store.PendingMerge) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, id := range c.Released {
		k := taskKey{c.To.Project, id}
		if kept, is := i.kept[k]; is {
			heads, merges = append(heads, git.Name(id)), append(merges, kept...)
			delete(i.kept, k)
		}
	}
	return heads, merges
}
