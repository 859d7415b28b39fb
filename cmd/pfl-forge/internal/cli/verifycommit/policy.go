package verifycommit

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/proof"
)

// maxConfig bounds the size of a configuration, in bytes.
const maxConfig = 1 << 20

// hold compares a need, as the plan of a commit states it, with the configuration by which it was
// planned: that of a commit which the change is built on, so no change loosens its own
// rules.
func (c *checker) hold(ctx context.Context, objects *objects.Reader, report *proof.Report, commit git.OID, need proof.Need) error {
	policy, err := git.ParseOID(need.Policy)
	if err != nil {
		report.Doubt("its plan does not say which commit's policy it was approved by")
		return nil //nolint:nilerr // that is the answer
	}
	made, err := objects.Commit(commit)
	if err != nil {
		return err
	}
	_, err = objects.Commit(policy)
	if errors.Is(err, git.ErrNotFound) {
		report.Doubt("its plan was approved by the policy of %s, which is no commit here", policy.Short())
		return nil
	}
	if err != nil {
		return err
	}
	before, err := c.repo.IsAncestor(ctx, policy, made.Parents[0])
	if err != nil {
		return err
	}
	if !before {
		report.Doubt("its plan was approved by the policy of %s, which it is not built on", policy.Short())
		return nil
	}
	// Without a file the defaults were in force.
	p := config.Default()
	data, err := c.repo.ReadFile(ctx, policy, config.FileName, maxConfig)
	if err == nil {
		p, err = config.Parse(data)
	}
	if err != nil && !errors.Is(err, git.ErrNotFound) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		report.Doubt("its plan was approved by the policy of %s, which cannot be read: %v", policy.Short(), err)
		return nil
	}
	// Where the file does not say whether a requester may approve, the statement's own count
	// stands: the default depends on how many people can approve, which no commit records,
	// and the runner applied it before it signed.
	not := p.Policy.Approvals.NotRequester
	report.Hold(need, proof.Floor{Count: p.Policy.Approvals.Count, NotRequester: not != nil && *not, Approvers: p.Policy.Approvers})
	return nil
}
