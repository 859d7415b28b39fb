package forgetest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
)

// status is one that was written for a commit.
type status struct {
	id                                        int64
	commit, by, context, state, text, address string
	at                                        time.Time
	// ref and allow are of GitLab's dialect: the branch of a job's pipeline, and whether it may fail.
	ref   string
	allow bool
}

// setStatus writes a status, for writers.
func (f pulls) setStatus(q *request) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return says(http.StatusForbidden, "user should have a permission to write to a repo")
	}
	s := &status{
		id: f.next(), commit: q.PathValue("sha"), by: q.user, context: q.in.Context, state: q.in.State, text: q.in.Description, address: q.in.TargetURL,
		at: f.now,
	}
	q.repo.statuses = append(q.repo.statuses, s)
	f.tell(q, nil, "status", object{"sha": s.commit, "context": s.context, "state": s.state})
	return http.StatusCreated, f.statusObject(s)
}

// statusObject returns a status as the API does.
func (f pulls) statusObject(s *status) object {
	return object{
		"id": s.id, "status": s.state, "context": s.context, "description": s.text, "target_url": s.address, "creator": f.user(s.by),
	}
}

// latest returns the last status of each name for a commit, of each ref that pipelines have, in the
// order of their names.
func (r *repo) latest(commit string) []*status {
	var out []*status
	for _, s := range slices.Backward(r.statuses) {
		if s.commit == commit && !slices.ContainsFunc(out, func(t *status) bool { return t.context == s.context && t.ref == s.ref }) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *status) int { return strings.Compare(a.context, b.context) })
	return out
}

// showStatuses returns a page of the last status of each name.
func (f pulls) showStatuses(q *request) (int, any) {
	out := []object{}
	for _, s := range q.repo.latest(q.PathValue("sha")) {
		out = append(out, f.statusObject(s))
	}
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

// compare counts the commits that the second of two has and the first has not.
func (f pulls) compare(q *request) (int, any) {
	first, second, ok := strings.Cut(q.PathValue("range"), "...")
	count, err := q.repo.Run("", "rev-list", "--count", first+".."+second, "--")
	if !ok || err != nil {
		return http.StatusNotFound, nil
	}
	n, _ := strconv.Atoi(count)
	return http.StatusOK, object{"total_commits": n}
}

// blocked returns why the rule of the base does not let a pull request in; empty if it does.
func (r *repo) blocked(p *pull) string {
	rule := r.rules[p.base]
	if rule == nil {
		return ""
	}
	for _, name := range rule.Contexts {
		passed := slices.ContainsFunc(r.latest(p.head), func(s *status) bool { return s.context == name && s.state == "success" })
		if rule.Statuses && !passed {
			return "Not all required status checks successful"
		}
	}
	approvals := 0
	for _, v := range p.reviews {
		if v.Official && !v.Dismissed && v.State == reviews.Approved {
			approvals++
		}
	}
	if approvals < rule.Approvals {
		return "Does not have enough approvals"
	}
	if rule.Rejected && slices.ContainsFunc(p.reviews, func(v *reviews.Review) bool { return v.Official && !v.Dismissed && v.State == reviews.Rejected }) {
		return "There are requested changes"
	}
	if rule.UpToDate && !r.Contains(p.head, r.Head(p.base)) {
		return "The head branch is behind the base branch"
	}
	return ""
}

// mergePull merges a pull request, in the order of Gitea's own refusals.
func (f pulls) mergePull(q *request) (int, any) {
	i, p := q.issue, q.issue.pull
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
	merge, err := q.repo.Merge(q.in.Do, p.base, p.head, i.title)
	if err != nil {
		return says(http.StatusConflict, "it conflicts")
	}
	p.merge, p.mergedBy, i.state, i.edited = merge, q.user, "closed", f.now
	f.tell(q, i, "pull_request", object{"action": "closed"})
	return http.StatusOK, nil
}
