package jobs

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
)

// View makes a checkout of a commit for reading. It waits while another attempt of
// the same task uses a view for the same purpose. done gives the checkout back, and
// must be called.
func (j *Job) View(ctx context.Context, purpose string, commit git.OID) (c *checkout.Checkout, done func(), err error) {
	return view(ctx, j, viewName(j, purpose), commit, j.Pool.View)
}

// verifyView is Job.View for commands that decide. It may wait for those of other tasks, but for no
// agent that reads: how many of these there are is up to the service, not to the project's pool.
func verifyView(ctx context.Context, j *Job, commit git.OID) (c *checkout.Checkout, done func(), err error) {
	return view(ctx, j, viewName(j, "verify"), commit, j.Pool.ViewInTurn)
}

// view is Job.View with the method of the pool that makes the checkout.
func view(
	ctx context.Context, j *Job, name git.Name, commit git.OID, open func(context.Context, git.Name, git.OID) (*checkout.Checkout, error),
) (c *checkout.Checkout, done func(), err error) {
	unlock, err := j.Lock(ctx, string(name))
	if err != nil {
		return nil, nil, err
	}
	if c, err = open(ctx, name, commit); err != nil {
		unlock()
		return nil, nil, err
	}
	return c, func() {
		if err := c.Release(); err != nil {
			j.host.Log.WarnContext(ctx, "cannot give a checkout back; the next one of its name does", "checkout", name, "error", err)
		}
		unlock()
	}, nil
}

// SetUp runs the project's worktree_setup commands in a fresh checkout. A command
// that fails is reported as forge.FailRepository, which is retried: the cause is the
// machine or the network, not the change. The caches of these commands are kept once
// commit is merged, whose files, and no others, the checkout has; not at all if it is empty.
func (j *Job) SetUp(ctx context.Context, c *checkout.Checkout, commit git.OID) error {
	layer, remove, err := j.host.scratch()
	if err != nil {
		return err
	}
	defer remove()
	report, err := j.setUp(ctx, c, layer)
	if err == nil && report.Passed {
		keepLayer(ctx, j, layer, commit)
	}
	if err != nil || report.Passed {
		return err
	}
	return agent.Fail(forge.FailRepository, "worktree_setup: %q failed:\n%s", report.Command, report.Output)
}
