package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Rules returns the part of a configuration that the rules of the flow read.
func (p *Project) Rules() *forge.Policy {
	policy := forge.DefaultPolicy()
	policy.MaxReviewRetries = p.MaxReviewRetries
	policy.TrustedOrigins = p.Policy.TrustedOrigins
	policy.Budget = forge.Budget(p.Budget)
	policy.ProtectedPaths, policy.Approvers = p.Policy.ProtectedPaths, p.Policy.Approvers
	policy.Approvals = forge.Approvals{Count: p.Policy.Approvals.Count, Persons: len(p.Policy.Approvers)}
	policy.AnalyzeBeforeApproval = string(p.Policy.AnalyzeBeforeApproval)
	policy.MaxDepth, policy.MinConfidence = p.Policy.MaxDepth, p.Review.MinConfidence
	policy.Reflection = forge.ReflectionPolicy{
		Off: !p.Reflection.Enabled, MaxGeneration: p.Reflection.MaxGeneration,
		ProposalsADay: p.Reflection.ProposalsADay, ProposalsATime: p.Reflection.ProposalsATime,
	}
	policy.StrongerImplement, policy.StrongerReview = p.Calls.Escalate.Steps()
	policy.Second, policy.BestOfTwo = p.SecondPolicy(), p.Calls.BestOfTwo.policy()
	policy.MaxChecks = min(p.Review.MaxChecks, len(p.Checks))
	policy.MergeParallel = cmp.Or(p.MergeQueue.Parallel, p.ParallelWorkers)
	if policy.MergeParallel > 1 && p.MergeQueue.Batch > 1 {
		policy.MergeBatch = p.MergeQueue.Batch
	}
	policy.VerifyInMerge = !p.MergeQueue.VerifyBeforeReview && len(p.Verify) > 0
	policy.MergeWhole, policy.Pull = p.Merge.Whole(), p.Merge.policy()
	if policy.Fallbacks = len(p.Fallback); slices.Contains(p.Fallback, p.Agent) {
		policy.Fallbacks--
	}
	// An implementation is set up, then implemented; what a replica does besides is short.
	const besides = 10 * time.Minute
	policy.AttemptTimeout = p.Timeouts.Implement + time.Duration(len(p.WorktreeSetup))*p.Timeouts.Verify + besides
	return &policy
}
