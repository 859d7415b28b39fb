package reviewer

import (
	"context"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/proof"
)

// state returns the signed statement of a verdict on the change between two
// commits; empty where nothing is signed. What the change is, the reviewer says
// by itself: the command may come from elsewhere.
func (r *Reviewer) state(ctx context.Context, j *jobs.Job, base, head git.OID, approved bool) (forge.Envelope, error) {
	key, err := r.key.Key()
	if err != nil || key == nil {
		return "", signing(err)
	}
	// The parent is the base that was shown to the agent as such. If the commit has
	// another one, the statement is about no commit that could be merged.
	tree, err := j.Store.Tree(ctx, head)
	if err != nil {
		return "", err
	}
	patch, err := j.Store.PatchID(ctx, base, head)
	if err != nil {
		return "", err
	}
	c := j.Command
	review := &proof.Review{
		Of:   proof.Task{Project: string(c.To.Project), Intent: string(c.To.Intent), Task: string(c.Attempt.Task)},
		Step: string(c.Attempt.Step), Second: c.Review().Second != nil, Verdict: proof.VerdictRejected,
		Agent: j.Result.Agent, Model: proof.Model(j.Result.Model), Replica: string(r.id),
	}
	if approved {
		review.Verdict = proof.VerdictApproved
	}
	s, err := key.State(proof.Change{Tree: string(tree), Parent: string(base), Patch: patch}, review)
	return s, signing(err)
}

// stateReview adds the signed statement to a verdict on a task.
func (r *Reviewer) stateReview(ctx context.Context, j *jobs.Job, base, head git.OID, v *forge.Review, approved bool) (err error) {
	v.Statement, err = r.state(ctx, j, base, head, approved)
	return err
}

// signing returns the error of a key with what it means.
func signing(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("nothing can be signed: %w", err)
}
