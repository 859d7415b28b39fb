package verifycommit

import (
	"context"
	"errors"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/proof"
)

// maxConfig bounds the size of a configuration, in bytes.
const maxConfig = 1 << 20

// hold compares a need, as the plan of a commit states it, with the configuration by which it was
// planned: that of a commit which the change is built on, so no change loosens its own rules. A
// need that the configuration is stricter than is a doubt in the report, and no error.
func (c *checker) hold(ctx context.Context, objects *objects.Reader, report *proof.Report, commit git.OID, need proof.Need) error {
	p, err := c.settings(ctx, objects, report, commit, need.Policy)
	if p == nil {
		return err
	}
	// Where the file does not say whether a requester may approve, the statement's own count
	// stands: the default depends on how many people can approve, which no commit records,
	// and the runner applied it before it signed.
	not := p.Policy.Approvals.NotRequester
	report.Hold(need, proof.Floor{Count: p.Policy.Approvals.Count, NotRequester: not != nil && *not, Approvers: p.Policy.Approvers})
	return nil
}

// second looks whether a change that one reviewer reviewed takes two, by the configuration by
// which it was reviewed, or its plan approved. Where its plan names none, that of its parent
// counts: leaving it out is no way around a second reviewer.
func (c *checker) second(ctx context.Context, objects *objects.Reader, report *proof.Report, commit git.OID) error {
	risk, policy, single := report.Reviewed()
	if !single {
		return nil
	}
	if policy == "" {
		made, err := objects.Commit(commit)
		if err != nil {
			return err
		}
		policy = string(made.Parents[0])
	}
	p, err := c.settings(ctx, objects, report, commit, policy)
	if p == nil {
		return err
	}
	if slices.Contains(p.SecondPolicy().When, forge.Risk(risk)) {
		report.Doubt("its risk is %s, for which review.second at %.10s asks for two reviewers, and there is proof of one", risk, policy)
	}
	return nil
}

// settings returns the configuration of a commit that a change is built on. Where there is no
// such, it adds that to the report, and returns none. An error is about this machine, such as
// objects that cannot be read; whatever is wrong with the change is a doubt.
func (c *checker) settings(ctx context.Context, objects *objects.Reader, report *proof.Report, commit git.OID, at string) (*config.Project, error) {
	policy, err := git.ParseOID(at)
	if err != nil {
		report.Doubt("its plan does not say which commit's policy it was approved by")
		return nil, nil //nolint:nilerr,nilnil // that is the answer
	}
	made, err := objects.Commit(commit)
	if err != nil {
		return nil, err
	}
	_, err = objects.Commit(policy)
	if errors.Is(err, git.ErrNotFound) {
		report.Doubt("its plan was approved by the policy of %s, which is no commit here; the whole history is needed (git fetch --unshallow)", policy.Short())
		return nil, nil //nolint:nilnil // that is the answer
	}
	if err != nil {
		return nil, err
	}
	before, err := c.repo.IsAncestor(ctx, policy, made.Parents[0])
	if err != nil {
		return nil, err
	}
	if !before {
		report.Doubt("its plan was approved by the policy of %s, which it is not built on", policy.Short())
		return nil, nil //nolint:nilnil // that is the answer
	}
	// Without a file the defaults were in force.
	p := config.Default()
	data, err := c.repo.ReadFile(ctx, policy, config.FileName, maxConfig)
	if err == nil {
		p, err = config.Parse(data)
	}
	if err != nil && !errors.Is(err, git.ErrNotFound) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		report.Doubt("its plan was approved by the policy of %s, which cannot be read: %v", policy.Short(), err)
		return nil, nil //nolint:nilnil // that is the answer
	}
	return p, nil
}
