package pulls

import (
	"context"
	"errors"
	"fmt"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/service"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
)

// Both steps can be carried out again from their start, by any gateway with the same
// forges: what a killed one has done is found and is not done twice. So nothing of an
// attempt is kept here, and a result that was lost costs the same attempt once more.

// Handlers returns the handlers of the steps open_pull and merge_pull, for the
// worker of a gateway that has these forges. Both hold a lease: two gateways do
// not write to one pull request at the same time.
func Handlers(keepers []*Keeper) []service.Handler {
	do := func(step forge.Step, work func(ctx context.Context, k *Keeper, cmd *forge.Command, in *forge.PullInput) (*forge.PullRequest, error)) service.Handler {
		return service.Handler{Step: step, Lease: true, Do: func(ctx context.Context, cmd forge.Command, _ service.Progress) forge.Result {
			in := cmd.Pull()
			k, err := of(keepers, cmd.To.Project)
			if err != nil {
				return forge.Result{Output: Failure(err)}
			}
			p, err := work(ctx, k, &cmd, &in)
			if err != nil {
				return forge.Result{Output: Failure(err)}
			}
			return forge.Result{Output: p}
		}}
	}
	return []service.Handler{
		do(forge.StepOpenPull, func(ctx context.Context, k *Keeper, cmd *forge.Command, in *forge.PullInput) (*forge.PullRequest, error) {
			return k.Open(ctx, cmd.To, cmd.Attempt, in)
		}),
		do(forge.StepMergePull, func(ctx context.Context, k *Keeper, cmd *forge.Command, in *forge.PullInput) (*forge.PullRequest, error) {
			return k.Merge(ctx, cmd.To, in)
		}),
	}
}

// of returns the keeper of a project.
func of(keepers []*Keeper, p forge.ProjectID) (*Keeper, error) {
	for _, k := range keepers {
		if k.Has(p) {
			return k, nil
		}
	}
	return nil, &PersonError{fmt.Sprintf("no forge of the gateway has a repository for project %s: name it in pull_requests of the forge's settings", p)}
}

// Failure returns the failure of an attempt by its error: whether to come
// again, and when, or whether a person has to do something first.
//
//	forge.FailOrigin       the forge is away, limits us until a time, or answers with what cannot be read: the same request, later
//	forge.FailInterrupted  the gateway ends: another one carries the step out, or this one when it is there again
//	forge.FailAuth         our account may not do that, or its token is not taken any more: a person gives it the right
//	forge.FailConfig       a name or the repository is not there, another account was first, or the forge refuses: a person mends it
//
// That a merge is refused is no failure: it is in the snapshot, since what is
// in the way may be gone with the next one.
func Failure(err error) *forge.Failure {
	f := &forge.Failure{Reason: forge.FailConfig, Message: err.Error()}
	if parked, ok := errors.AsType[*forges.ParkedError](err); ok {
		f.Reason, f.Until = forge.FailOrigin, parked.Until.UTC()
		return f
	}
	_, person := errors.AsType[*PersonError](err)
	_, refused := errors.AsType[*forges.RefusedError](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f.Reason = forge.FailInterrupted
	case person, refused, errors.Is(err, forges.ErrMethod), errors.Is(err, forges.ErrNotFound):
	case errors.Is(err, forges.ErrDenied):
		f.Reason = forge.FailAuth
	default: // an answer that cannot be read: the same request may have another one later
		f.Reason = forge.FailOrigin
	}
	return f
}
