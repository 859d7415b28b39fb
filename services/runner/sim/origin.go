package sim

import (
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/sim/trunk"
)

// outage returns the result of an attempt to which the origin does not answer,
// or that was told so; nil if it answers.
func (w worker) outage(c *forge.Command) *forge.Result {
	if slices.Contains(c.ClosedAgents, forge.GitOrigin) {
		return &forge.Result{Output: &forge.Failure{Reason: forge.FailHeld, Message: "the origin does not answer"}}
	}
	if !w.origin.Away(w.rng, w.seed, w.faults) {
		return nil
	}
	if c.Attempt.Step == forge.StepProbe { // whose worker has waited meanwhile
		w.now = w.now.Add(c.Probe().Patience + time.Second)
	}
	return &forge.Result{Output: &forge.Failure{Reason: forge.FailOrigin, Message: "nobody listens"}}
}

// refusal returns the result of a merge whose push a hook refuses; nil if it is
// accepted. The next try may take what this one verified on the tip, if it did.
func (w worker) refusal(head trunk.Commit, verified bool) *forge.Result {
	if !w.origin.Refuses(w.rng, w.seed, w.faults, head.Task) {
		return nil
	}
	r := &forge.MergeResult{Outcome: forge.MergeRefused, Refusal: "main: no ticket"}
	if tree := w.repo.Content(w.repo.Tip()); verified {
		w.workers.train.passed[[2]string{tree, head.On(tree)}] = true
		r.Candidate = &forge.Rebase{BaseTree: tree, Head: head.ID, Tree: head.On(tree), PatchID: head.Patch, Verify: &forge.VerifyReport{Passed: true}}
	}
	return &forge.Result{Output: r}
}
