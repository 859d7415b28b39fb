package implementer

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/proof"
	"github.com/pfl-forge/pfl-forge/verdict"
)

// stateVerified adds to a rebase the signed statement that its tree passed the
// verify commands, and the checks of its goal, on its parent. One that did not pass has none, and
// neither has any where nothing is signed.
func (i *Implementer) stateVerified(j *jobs.Job, r *forge.Rebase) error {
	key, err := i.key.Key()
	if err != nil || key == nil || r.Head == r.Base || r.Unverified || verdict.Failing(r.Verify) != "" {
		return signing(err)
	}
	v := &proof.Verify{
		Of:         taskOf(j),
		Definition: proof.Definition(j.Config.WorktreeSetup, j.Config.Verify), Commands: []proof.Command{},
		Replica: string(i.id), Executor: string(j.Result.Executor), Together: r.Together,
	}
	if r.Verify != nil {
		v.Commands, v.Checks = proof.Passed(j.Config.WorktreeSetup, j.Config.Verify), proof.Checked(r.Verify.Checks)
	}
	r.Statement, err = key.State(proof.Change{Tree: r.Tree, Parent: r.Base, Patch: r.PatchID}, v)
	return signing(err)
}

// taskOf names the task of a job in statements.
func taskOf(j *jobs.Job) proof.Task {
	return proof.Task{Project: string(j.Command.To.Project), Intent: string(j.Command.To.Intent), Task: string(j.Command.Attempt.Task)}
}

// sign makes the commit of a merge a signed one; the same where nothing is
// signed, and where there is nothing to merge. Tree, parent, author, dates and
// message stay, and the same key makes the same commit whenever it is made again.
func (i *Implementer) sign(ctx context.Context, j *jobs.Job, r *forge.MergeResult) error {
	key, err := i.key.Key()
	if err != nil || key == nil || r.Commit == r.Parent {
		return signing(err)
	}
	signed, err := j.Store.SignCommit(ctx, git.OID(r.Commit), key.SignCommit)
	r.Commit = string(signed)
	return err
}

// signing returns the error of a key with what to do about it.
func signing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("nothing can be signed: %w", err)
}
