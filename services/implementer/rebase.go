package implementer

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/implementer/commitmsg"
	"github.com/pfl-forge/pfl-forge/services/implementer/ontip"
	"github.com/pfl-forge/pfl-forge/services/implementer/verify"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// maxMeanwhile bounds the paths that are reported of what was merged meanwhile.
const maxMeanwhile = 1000

// rebase carries out the step rebase.
func (i *Implementer) rebase(ctx context.Context, cmd forge.Command, progress service.Progress) forge.Result {
	return i.repos.Do(ctx, &cmd, progress, func(ctx context.Context, j *jobs.Job) error {
		adopted := cmd.Rebase().Adopted
		if adopted != nil && adopted.Author == "" {
			c, refusal, err := ontip.Take(ctx, j, adopted, commitmsg.Squash(j.Command))
			switch {
			case err != nil:
				return err
			case refusal != nil:
				j.Result.Output = refusal
				return nil
			}
			return i.rebased(ctx, j, c)
		}
		base, head, err := change(ctx, j, cmd.Task.Base, cmd.Task.Head, cmd.To.Intent)
		if err != nil {
			return err
		}
		if names := cmd.Rebase().Asked; len(names) > 0 {
			j.Result.Output, err = jobs.RunAsked(ctx, j, base, head, names)
			return err
		}
		if base == head {
			j.Result.Output, err = verifyUnchanged(ctx, j)
			return err
		}
		made := ontip.Change{Base: base, Head: head}
		if adopted != nil {
			made.Author = adopted.Author
		}
		return i.rebased(ctx, j, made)
	})
}

// rebased reports a change that is put on the tip.
func (i *Implementer) rebased(ctx context.Context, j *jobs.Job, c ontip.Change) error {
	r, err := i.rebaseOntoTip(ctx, j, c)
	if r != nil && r.Head != "" && r.Head != r.Base {
		i.changes.Keep(ctx, j, git.OID(r.Base), git.OID(r.Head)) // a merge keeps none: it merges one that readers have
	}
	if err == nil && r.Head != "" && r.Head != r.Base {
		r.Overlaps = i.findOverlaps(ctx, j, git.OID(r.Base), git.OID(r.Head))
	}
	j.Result.Output = r
	return err
}

// change returns the commits of a change of an intent, once they are in the store.
func change(ctx context.Context, j *jobs.Job, base, head string, of forge.IntentID) (b, h git.OID, err error) {
	if b, err = jobs.OID("base", base); err != nil {
		return "", "", err
	}
	if h, err = jobs.OID("head", head); err != nil {
		return "", "", err
	}
	return b, h, j.Bring(ctx, of, b, h)
}

// rebaseOntoTip puts a change on the tip of the base branch as one commit, keeps it except in a
// merge, and runs the verify commands on it. It is one commit, because every tree on the base
// branch is to be one that was verified. Its message is that of the commit on the base branch.
func (i *Implementer) rebaseOntoTip(ctx context.Context, j *jobs.Job, c ontip.Change) (*forge.Rebase, error) {
	r, alone, err := ontip.Put(ctx, j, c, commitmsg.Squash(j.Command))
	if err != nil || len(r.Conflicts) > 0 {
		return r, err
	}
	made, alone, err := verify.AsMade(ctx, j, c.Base, alone)
	if err != nil {
		return nil, err
	}
	if j.Command.Attempt.Step != forge.StepMerge { // what lands is kept as a merge
		if _, err := j.Store.Keep(ctx, i.newestAttempt(j), git.OID(r.Head)); err != nil {
			return nil, err
		}
	}
	var v verify.Change
	if made != j.Tip {
		v.Alone = alone
	}
	// The rules know the policy as it was when the intent was analyzed; the
	// configuration on the tip has the last word.
	v.Leave = j.Command.Rebase().VerifyInMerge && !j.Config.MergeQueue.VerifyBeforeReview && len(j.Config.Verify) > 0
	if err := i.results.OnTip(ctx, j, r, v); err != nil {
		return r, err
	}
	// With these the change has to be made again; or it may have to, if the
	// check of its recipe fails in the review.
	outrun := j.Command.Attempt.Step == forge.StepRebase && made != j.Tip && j.HasCheck()
	if outrun || verdict.Blame(r.Verify, r.Tree) == verdict.FaultOfBoth {
		meanwhile, err := ontip.Files(ctx, j, made, j.Tip)
		if err != nil {
			return nil, err
		}
		r.Landed = meanwhile[:min(len(meanwhile), maxMeanwhile)]
	}
	if r.Unverified && made != j.Tip {
		r.MadeOn = string(made)
	}
	return r, i.stateVerified(j, r)
}

// verifyUnchanged runs the verify commands on the tip of the base branch: what a goal that has
// changed nothing is judged by.
func verifyUnchanged(ctx context.Context, j *jobs.Job) (*forge.Rebase, error) {
	tree, err := j.Store.Tree(ctx, j.Tip)
	if err != nil {
		return nil, err
	}
	r := &forge.Rebase{Base: string(j.Tip), Head: string(j.Tip), Tree: string(tree)}
	r.Verify, err = verify.Unchanged(ctx, j)
	return r, err
}

// newestAttempt returns the name under which the task's newest commit is kept, and
// remembers that this process keeps it.
func (i *Implementer) newestAttempt(j *jobs.Job) store.Attempt {
	i.recordKept(j)
	a := j.GitAttempt()
	a.Newest = true
	return a
}
