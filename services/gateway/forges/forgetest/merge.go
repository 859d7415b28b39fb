package forgetest

import (
	"net/http"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/statuses"
)

// setStatus writes a status, for writers.
func (f pulls) setStatus(q *request) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return says(http.StatusForbidden, "user should have a permission to write to a repo")
	}
	s := &statuses.Status{
		ID: f.next(), Commit: q.PathValue("sha"), By: q.user, Context: q.in.Context, State: q.in.State, Text: q.in.Description, Address: q.in.TargetURL,
		At: f.now,
	}
	q.repo.statuses = append(q.repo.statuses, s)
	f.tell(q, nil, "status", object{"sha": s.Commit, "context": s.Context, "state": s.State})
	return http.StatusCreated, statuses.Gitea(f.user)(s)
}

// showStatuses returns a page of the last status of each name.
func (f pulls) showStatuses(q *request) (int, any) {
	out := q.repo.statuses.Latest(q.PathValue("sha")).Show(statuses.Gitea(f.user))
	return http.StatusOK, object{"sha": q.PathValue("sha"), "statuses": pageOf(q, out)}
}

// protect makes the rule of a branch, for administrators.
func (f pulls) protect(q *request) (int, any) {
	if !q.repo.may(q.user, "admin") {
		return http.StatusForbidden, nil
	}
	rule := q.rule
	q.repo.rules[rule.Name] = &rule
	return http.StatusCreated, rule
}

// showRule returns the rule of a branch, to administrators.
func (f pulls) showRule(q *request) (int, any) {
	rule := q.repo.rules[q.PathValue("branch")]
	switch {
	case !q.repo.may(q.user, "admin"):
		return http.StatusForbidden, nil
	case rule == nil:
		return http.StatusNotFound, nil
	}
	return http.StatusOK, rule
}

// showBranch returns a branch.
func (f pulls) showBranch(q *request) (int, any) {
	name := q.PathValue("branch")
	if q.repo.Head(name) == "" {
		return http.StatusNotFound, nil
	}
	o := object{"name": name, "protected": q.repo.rules[name] != nil, "commit": object{"id": q.repo.Head(name)}}
	if q.repo.rules[name] != nil {
		o["effective_branch_protection_name"] = name
	}
	return http.StatusOK, o
}

// deleteBranch deletes a branch, for writers.
func (f pulls) deleteBranch(q *request) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return http.StatusForbidden, nil
	}
	if _, err := q.repo.Run("", "update-ref", "-d", "refs/heads/"+q.PathValue("branch")); err != nil {
		return http.StatusNotFound, nil
	}
	return http.StatusNoContent, nil
}

// blocked returns why the rule of the base does not let a pull request in; empty if it does.
func (r *repo) blocked(p *pull) string {
	return r.rules[p.base].Blocked(r.statuses.Latest(p.head), p.reviews, func() bool { return r.Contains(p.head, r.Head(p.base)) })
}

// mergePull merges a pull request. Its refusals and their order are Gitea's own: a caller that
// sees one of them knows that none of those before it applied.
func (f pulls) mergePull(q *request) (int, any) {
	i, p := q.issue, q.issue.pull
	if q.in.Later {
		if status, scheduled := f.schedule(q); scheduled {
			return status, nil
		}
	}
	switch reason := q.repo.blocked(p); {
	case p.merge != "":
		return says(http.StatusMethodNotAllowed, "The PR is already merged")
	case i.state != "open":
		return says(http.StatusNotFound, "not found")
	case !q.repo.may(q.user, "write", "admin"):
		return says(http.StatusMethodNotAllowed, "User not allowed to merge PR")
	case isDraft(i.title):
		return says(http.StatusMethodNotAllowed, "Work in progress PRs cannot be merged")
	case reason != "":
		return says(http.StatusMethodNotAllowed, reason)
	case q.in.HeadCommitID != "" && q.in.HeadCommitID != p.head:
		return says(http.StatusConflict, "head out of date")
	}
	merge, err := q.repo.Merge(q.in.Do, p.base, p.head, i.of(q.repo).Gitea(q.in.Do, &q.in.Asked))
	if err != nil {
		return says(http.StatusConflict, "it conflicts")
	}
	p.merge, p.how, p.mergedBy, i.state, i.edited = merge, q.in.Do, q.user, "closed", f.now
	f.tell(q, i, "pull_request", object{"action": "closed"})
	return http.StatusOK, nil
}
