// Package protect has the protection of the branches of a forge for tests, in Gitea's words.
//
// Package forgetest asks Blocked before it merges, and shows the same rule in the dialects
// of GitHub and GitLab. A test that needs a branch to refuse a merge sets a Rule.
package protect

import (
	"slices"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/statuses"
)

// Object is a JSON object.
type Object = map[string]any

// Rule is the protection of a branch.
type Rule struct {
	// Contexts count only with Statuses.
	Statuses  bool     `json:"enable_status_check"`
	Contexts  []string `json:"status_check_contexts"`
	Approvals int      `json:"required_approvals"`
	UpToDate  bool     `json:"block_on_outdated_branch"`
	Stale     bool     `json:"dismiss_stale_approvals"`
	Rejected  bool     `json:"block_on_rejected_reviews"`
	Admins    bool     `json:"block_admin_merge_override"`
	Name      string   `json:"rule_name"`
}

// Blocked returns why the rule does not let a change in; empty if it does. latest
// are the last statuses of its head, and contains reports whether the head has all
// commits of the base; it is asked last, since it runs git. There may be no rule.
func (r *Rule) Blocked(latest statuses.List, list reviews.List, contains func() bool) string {
	if r == nil {
		return ""
	}
	for _, name := range r.Contexts {
		passed := slices.ContainsFunc(latest, func(s *statuses.Status) bool { return s.Context == name && s.Passed() })
		if r.Statuses && !passed {
			return "Not all required status checks successful"
		}
	}
	approvals, rejected := 0, false
	for _, v := range list {
		if v.Official && !v.Dismissed {
			rejected = rejected || v.State == reviews.Rejected
			if v.State == reviews.Approved {
				approvals++
			}
		}
	}
	switch {
	case approvals < r.Approvals:
		return "Does not have enough approvals"
	case r.Rejected && rejected:
		return "There are requested changes"
	case r.UpToDate && !contains():
		return "The head branch is behind the base branch"
	}
	return ""
}

// GitHub returns a rule as GitHub does.
func (r *Rule) GitHub(address string) Object {
	o := Object{
		"enforce_admins": Object{"url": address, "enabled": r.Admins},
		"required_pull_request_reviews": Object{
			"dismiss_stale_reviews": r.Stale, "require_code_owner_reviews": false, "required_approving_review_count": r.Approvals,
		},
	}
	if r.Statuses {
		o["required_status_checks"] = Object{"strict": r.UpToDate, "contexts": r.Contexts, "checks": []Object{}}
	}
	return o
}

// GitLab returns the approvals of a rule for a branch as GitLab does.
func (r *Rule) GitLab(branch string) Object {
	return Object{
		"id": 1, "name": "All Members", "approvals_required": r.Approvals, "applies_to_all_protected_branches": false,
		"protected_branches": []Object{{"id": 1, "name": branch}},
	}
}
