package implementer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/implementer/commitmsg"
	"github.com/pfl-forge/pfl-forge/services/implementer/ontip"
	"github.com/pfl-forge/pfl-forge/services/implementer/proposal"
	"github.com/pfl-forge/pfl-forge/services/implementer/verify"
	"github.com/pfl-forge/pfl-forge/verdict"
)

const (
	// moveTimeout bounds moving the base branch. Once begun it is not cancelled,
	// because its outcome would be unknown.
	moveTimeout = 5 * time.Minute
	// mergeLock serialises the merges of a repository.
	mergeLock = "merge"
)

// merge carries out the step merge.
func (i *Implementer) merge(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
	return i.repos.Do(ctx, &cmd, progress, func(ctx context.Context, j *jobs.Job) error {
		if cmd.Merge().Change == nil {
			return agent.Fail(forge.FailInvalidOutput, "the command does not say what to be merged")
		}
		if cmd.Merge().Trial {
			return i.try(ctx, j)
		}
		unlock, err := j.Lock(ctx, mergeLock)
		if err != nil {
			return err
		}
		defer unlock()
		return i.moveBase(ctx, j)
	})
}

// moveBase moves the base branch to the change, unless an earlier attempt has done so.
func (i *Implementer) moveBase(ctx context.Context, j *jobs.Job) error {
	if err := j.Refresh(ctx); err != nil {
		return err
	}
	if merge := j.Command.Merge().Landed; merge != nil {
		return proposal.Prove(ctx, j, merge)
	}
	l := j.Command.Merge().Change
	base, head, err := change(ctx, j, l.Base, l.Head, j.Command.To.Intent)
	if err != nil {
		return err
	}
	if j.Result.Output, err = i.earlierMerge(ctx, j, base); err != nil || forge.As[*forge.MergeResult](j.Result.Output) != nil {
		return err
	}
	if head, err = addApprover(ctx, j, base, head); err != nil {
		return err
	}
	if j.Result.Output, err = i.tryMerge(ctx, j, base, head); errors.Is(err, git.ErrMoved) {
		return overtaken(ctx, j)
	}
	return err
}

// overtaken reports that the base branch has moved since the change was put on it.
// When the change is tried again is for the queue to say, which knows the others.
// A branch that is where it was is a failure: nothing would bound the tries.
func overtaken(ctx context.Context, j *jobs.Job) error {
	before := j.Tip
	if err := j.Refresh(ctx); err != nil {
		return err
	}
	if j.Tip == before {
		return agent.Fail(forge.FailRepository, "the base branch was found elsewhere than at %s, where it is", before.Short())
	}
	j.Result.Output = &forge.MergeResult{Outcome: forge.MergeOvertaken}
	return nil
}

// addApprover returns the commit to merge with the person in its message who
// approved since it was verified. Tree, parent, author and dates are the same,
// and so is the commit whenever it is made again.
func addApprover(ctx context.Context, j *jobs.Job, base, head git.OID) (git.OID, error) {
	if j.Command.Merge().Change.Approver == "" {
		return head, nil
	}
	return j.Store.Squash(ctx, base, head, ontip.Author(j.Command.Merge().Change), commitmsg.Squash(j.Command))
}

// tryMerge merges the change on the present tip, or returns what is in the way.
// git.ErrMoved says that the tip has moved meanwhile.
func (i *Implementer) tryMerge(ctx context.Context, j *jobs.Job, base, head git.OID) (*forge.MergeResult, error) {
	l := j.Command.Merge().Change
	r := &forge.MergeResult{Outcome: forge.MergeDone, Commit: string(head), Parent: l.Base, Tree: l.Tree, PatchID: l.PatchID}
	statements := l.Statements
	var moved *forge.Rebase
	// The reviewed commit is merged as it is if the base branch has not moved
	// since it was verified. Otherwise the change is rebased onto the tip and
	// verified there, even if that yields the reviewed commit.
	if j.Tip != base || l.Unverified {
		var err error
		if moved, err = i.rebaseOntoTip(ctx, j, ontip.Change{Base: base, Head: head, Author: ontip.Author(l)}); err != nil {
			return nil, err
		}
		if stop, err := i.stopped(ctx, j, moved, base, head); stop != nil || err != nil {
			return stop, err
		}
		r.Commit, r.Parent, r.Tree = moved.Head, moved.Base, moved.Tree
		if moved.Verify != nil && (l.Unverified || len(moved.Verify.Trials) > 0) { // the rules say what of that they believe
			r.Verify = moved.Verify
		}
		statements = anew(statements, moved)
	}
	// The commit is signed last: no later step changes it.
	if err := i.sign(ctx, j, r); err != nil {
		return nil, err
	}
	wanted, err := i.bus.Journal.Wanted(ctx, j.Command.To, j.Command.Attempt)
	if err != nil {
		return nil, err
	}
	if !wanted {
		return nil, agent.Fail(forge.FailKilled, "the merge was cancelled")
	}
	done, err := i.move(ctx, j, r, proof.Bundle(statements...))
	if err != nil {
		return jobs.Refused(ctx, j, moved, err)
	}
	if done.Outcome == forge.MergeProposed { // when its turn comes again, what was verified here is not verified once more
		done.Candidate = moved
	}
	return done, nil
}

// anew returns the statements about a change that was verified on another base. None are left
// if all of it is there already: that commit is not of this merge, and has proofs of its own.
func anew(statements []forge.Envelope, moved *forge.Rebase) []forge.Envelope {
	if moved.Statement == "" {
		return nil
	}
	return proof.Instead(statements, moved.Statement)
}

// obstacle returns why a change that was rebased onto a new tip cannot be
// merged there; nil if it can.
func obstacle(moved *forge.Rebase, patch string) *forge.MergeResult {
	switch {
	case len(moved.Conflicts) > 0:
		return &forge.MergeResult{Outcome: forge.MergeConflict, Files: moved.Conflicts}
	case verdict.Failing(moved.Verify) != "": // also where all of it is there already: done is not what fails
		return &forge.MergeResult{Outcome: forge.MergeVerifyFailed, Verify: verdict.Strict(moved.Verify), Candidate: moved}
	case moved.Head == moved.Base: // all of it is there already, so there is nothing to review
		return nil
	case moved.PatchID != patch:
		return &forge.MergeResult{Outcome: forge.MergePatchChanged, Candidate: moved}
	}
	return nil
}

// stopped returns why a change does not land on a new tip, and keeps its commit
// there, which is named from then on; nil if it can land.
func (i *Implementer) stopped(ctx context.Context, j *jobs.Job, moved *forge.Rebase, base, head git.OID) (*forge.MergeResult, error) {
	stop := obstacle(moved, j.Command.Merge().Change.PatchID)
	if stop == nil {
		if guarded, err := newlyGuarded(ctx, j, moved, base, head); !guarded {
			return nil, err
		}
		stop = &forge.MergeResult{Outcome: forge.MergePatchChanged, Candidate: moved}
	}
	if stop.Candidate != nil {
		if _, err := j.Store.Keep(ctx, i.newestAttempt(j), git.OID(moved.Head)); err != nil {
			return jobs.Refused(ctx, j, nil, err)
		}
	}
	return stop, nil
}

// newlyGuarded reports whether the moved base branch asks for a person's
// approval of files for which the commit that was reviewed did not.
func newlyGuarded(ctx context.Context, j *jobs.Job, moved *forge.Rebase, base, head git.OID) (bool, error) {
	if len(moved.Guarded) == 0 || moved.Head == moved.Base {
		return false, nil
	}
	before, err := verify.GuardedSince(ctx, j, base, head)
	return err == nil && slices.ContainsFunc(moved.Guarded, func(why string) bool { return !slices.Contains(before, why) }), err
}

// move records the merge in the repository, so that it can be reported after a
// crash, with the proofs of its commit, and moves the base branch.
func (i *Implementer) move(ctx context.Context, j *jobs.Job, r *forge.MergeResult, proofs string) (*forge.MergeResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	l := store.PendingMerge{
		Intent: j.Intent(), Task: j.Task(), Number: j.Command.Attempt.Number, Parent: git.OID(r.Parent), Commit: git.OID(r.Commit),
		Proofs: proofs,
	}
	i.recordKept(j, l) // before: the answer may get lost
	if err := j.Store.KeepPendingMerge(ctx, l); err != nil {
		return nil, err
	}
	i.crash("kept")
	base, err := j.Base(ctx)
	if err != nil {
		return nil, err
	}
	if j.Command.Merge().Change.Pull != nil {
		return proposal.Push(ctx, j, base, r)
	}
	_, err = j.Store.Merge(ctx, base, l.Parent, l.Commit)
	if overlap, ok := errors.AsType[*git.UncommittedError](err); ok {
		return &forge.MergeResult{Outcome: forge.MergeDirty, Files: overlap.Files}, nil
	}
	if errors.Is(err, git.ErrInProgress) {
		return &forge.MergeResult{Outcome: forge.MergeDirty, Files: []string{"a git operation that is not finished"}}, nil
	}
	if err != nil {
		return nil, err
	}
	i.crash("moved")
	return r, nil
}
