package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/statuses"
)

// labPulls answers in GitLab's dialect what is about commits, merge requests, reviews and statuses.
type labPulls struct{ *Lab }

// version is a head that a merge request had, since when.
type version struct {
	head string
	at   time.Time
}

// object returns a merge request as GitLab does.
func (f labPulls) object(r *repo, i *issue) object {
	o, p := f.labIssue(r, i), i.pull
	delete(o, "confidential")
	o["source_branch"], o["target_branch"], o["source_project_id"], o["target_project_id"] = p.branch, p.base, r.id, r.id
	if p.fork {
		o["source_project_id"] = r.id + 1_000_000
	}
	title := strings.ToLower(i.title)
	o["draft"] = strings.HasPrefix(title, "draft:") || strings.HasPrefix(title, "[draft]") || strings.HasPrefix(title, "(draft)")
	o["sha"], o["web_url"], o["detailed_merge_status"] = p.head, fmt.Sprintf("%s/%s/-/merge_requests/%d", f.srv.URL, r.name, i.number), "checking"
	o["merge_when_pipeline_succeeds"] = p.queue.In
	o["merge_commit_sha"], o["squash_commit_sha"], o["merge_user"], o["closed_by"] = nil, nil, nil, nil
	switch {
	case p.merge != "":
		o["state"], o["merge_user"] = "merged", f.labUser(p.mergedBy, false)
		if field := map[string]string{"merge": "merge_commit_sha", "squash": "squash_commit_sha"}[p.how]; field != "" {
			o[field] = p.merge
		}
	case i.state == "closed":
		o["closed_by"] = f.labUser(i.events[slices.IndexFunc(i.events, func(e *event) bool { return e.kind == "close" })].by, false)
	}
	if f.Computing == 0 {
		o["detailed_merge_status"] = f.status(r, i, o["draft"] == true)
	}
	return o
}

// status returns why a merge request cannot be merged, in GitLab's words.
func (f labPulls) status(r *repo, i *issue, draft bool) string {
	p, set, rule := i.pull, f.settings(r), r.rules[i.pull.base]
	list := r.statuses.Latest(p.head)
	failed := slices.ContainsFunc(list, func(s *statuses.Status) bool { return !s.Passed() && !s.Allow })
	switch {
	case i.state != "open":
		return "not_open"
	case draft:
		return "draft_status"
	case set.Pipelines && (failed || len(list) == 0):
		return "ci_must_pass"
	case set.Resolved && p.reviews.Open():
		return "discussions_not_resolved"
	case rule != nil && !set.Free && len(p.approvers(r)) < rule.Approvals:
		return "not_approved"
	case set.Method != "merge" && !r.Contains(p.head, r.Head(p.base)):
		return "need_rebase"
	}
	return "mergeable"
}

// approvers returns those who approve and may write.
func (p *pull) approvers(r *repo) (out []string) {
	for by, v := range p.reviews.Last() {
		if v.State == reviews.Approved && !v.Dismissed && r.may(by, "write", "admin") {
			out = append(out, by)
		}
	}
	return out
}

// show returns a merge request.
func (f labPulls) show(q *request, _ *labIn) (int, any) {
	o := f.object(q.repo, q.issue)
	f.Computing = max(f.Computing-1, 0)
	return http.StatusOK, o
}

// open opens a merge request, for writers.
func (f labPulls) open(q *request, in *labIn) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return http.StatusForbidden, nil
	}
	q.in.Head, q.in.Base, q.in.Title, q.in.Body = in.SourceBranch, in.TargetBranch, in.Title, in.Description
	switch status, _ := (pulls{f.Fake}).openPull(q); status {
	case http.StatusConflict:
		return http.StatusConflict, object{"message": []string{"Another open merge request already exists for this source branch: !1"}}
	case http.StatusNotFound:
		return http.StatusUnprocessableEntity, object{"message": object{"base": []string{"the branches do not exist"}}}
	}
	q.issue = q.repo.issues[len(q.repo.issues)-1]
	f.addLabels(q, in.Labels)
	return http.StatusCreated, f.object(q.repo, q.issue)
}

// Fork has the branch of a merge request be another project's, which has the same name there.
func (f *Lab) Fork(name string, number int64) {
	f.Change(func(*LabState) { f.repos[strings.ToLower(name)].issues[number-1].pull.fork = true })
}

// merge merges a merge request, in the order of GitLab's own refusals. Why is not in them.
func (f labPulls) merge(q *request, in *labIn) (int, any) {
	i, p, set := q.issue, q.issue.pull, f.settings(q.repo)
	if p.how = "merge"; in.Squash && set.Squash != "never" || set.Squash == "always" {
		p.how = "squash"
	} else if set.Method == "ff" {
		p.how = "fast-forward-only"
	}
	switch {
	case !q.repo.may(q.user, "write", "admin"):
		return says(http.StatusUnauthorized, "401 Unauthorized")
	case in.AutoMerge && (in.SHA == "" || in.SHA == p.head) && f.object(q.repo, i)["detailed_merge_status"] == "ci_must_pass":
		p.queue.Strict, p.queue.Message = true, i.of(q.repo).GitLab("merge", &in.Asked)
		p.queue.Put(f.next(), q.user, p.head, f.now)
		return http.StatusOK, f.object(q.repo, i)
	case f.Computing > 0 || f.object(q.repo, i)["detailed_merge_status"] != "mergeable":
		return says(http.StatusMethodNotAllowed, "405 Method Not Allowed")
	case in.SHA != "" && in.SHA != p.head:
		return says(http.StatusConflict, "SHA does not match HEAD of source branch: "+p.head)
	}
	merge, err := q.repo.Merge(p.how, p.base, p.head, i.of(q.repo).GitLab(p.how, &in.Asked))
	if err != nil {
		return says(http.StatusUnprocessableEntity, "Branch cannot be merged")
	}
	p.merge, p.mergedBy, i.state, i.edited = merge, q.user, "closed", f.now
	f.tell(q, i, "pull_request", object{"action": "closed"})
	return http.StatusOK, f.object(q.repo, i)
}

// part returns who approves, the reviewers, the discussions or the versions of a merge request.
// The newest version comes first, and its number is counted from 1.
func (f labPulls) part(q *request, in *labIn) (int, any) {
	var out []object
	p := q.issue.pull
	switch q.PathValue("what") {
	case "notes":
		return f.notes(q, in)
	case "approvals", "reviewers":
		approve := []object{}
		for by, v := range p.reviews.Last() {
			state := map[string]string{reviews.Approved: "approved", reviews.Rejected: "requested_changes"}[v.State]
			out = append(out, object{"user": f.labUser(by, false), "state": state, "created_at": v.At})
			if v.State == reviews.Approved && !v.Dismissed {
				approve = append(approve, object{"user": f.labUser(by, false), "approved_at": v.At})
			}
		}
		if q.PathValue("what") == "approvals" {
			return http.StatusOK, object{"approved": len(approve) > 0, "approved_by": approve}
		}
	case "discussions":
		out = f.discussions(q.issue)
	case "versions":
		for n, v := range slices.Backward(p.versions) {
			out = append(out, object{"id": n + 1, "head_commit_sha": v.head, "created_at": v.at, "patch_id_sha": q.repo.Patch(p.base, v.head)})
		}
	default:
		return http.StatusNotFound, nil
	}
	return http.StatusOK, hubPage(q, out)
}

// answer adds an answer to a discussion.
func (f labPulls) answer(q *request, in *labIn) (int, any) {
	q.in.Body = in.Body
	first, _ := strconv.ParseInt(strings.TrimPrefix(q.PathValue("discussion"), "d"), 10, 64)
	_, m := pulls{f.Fake}.answer(q, first)
	if m == nil {
		return says(http.StatusNotFound, "404 Discussion Not Found")
	}
	notes := f.allNotes(q.issue)
	return http.StatusCreated, notes[slices.IndexFunc(notes, func(o object) bool { return o["id"] == m.ID })]
}

// branch returns a branch.
func (f labPulls) branch(q *request, _ *labIn) (int, any) {
	name := q.PathValue("b")
	if q.repo.Head(name) == "" {
		return says(http.StatusNotFound, "404 Branch Not Found")
	}
	return http.StatusOK, object{"name": name, "protected": q.repo.rules[name] != nil, "developers_can_merge": false, "commit": object{"id": q.repo.Head(name)}}
}

// statuses returns a page of the last statuses.
func (f labPulls) statuses(q *request, _ *labIn) (int, any) {
	return http.StatusOK, hubPage(q, q.repo.statuses.Latest(q.PathValue("sha")).Show(statuses.GitLab(f.other)))
}

// setStatus writes a status, for writers. One that waits cannot be made to wait once more.
func (f labPulls) setStatus(q *request, in *labIn) (int, any) {
	waits := slices.ContainsFunc(q.repo.statuses.Latest(q.PathValue("sha")), func(s *statuses.Status) bool {
		return s.Context == in.Name && s.By == q.user && s.State == "pending"
	})
	switch {
	case in.State == "pending" && waits:
		return says(http.StatusBadRequest, `Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via "enqueue")`)
	case len([]rune(in.Description)) > 255:
		return http.StatusBadRequest, object{"message": object{"description": []string{"is too long (maximum is 255 characters)"}}}
	}
	q.in.Context, q.in.State, q.in.Description, q.in.TargetURL = in.Name, in.State, in.Description, in.TargetURL
	if status, out := (pulls{f.Fake}).setStatus(q); status != http.StatusCreated {
		return status, out
	}
	return http.StatusCreated, statuses.GitLab(f.other)(q.repo.statuses[len(q.repo.statuses)-1])
}

// Job has a job of a pipeline say something about a commit.
func (f *Lab) Job(name, commit, job, state, ref string, allow bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.repos[strings.ToLower(name)]
	r.statuses = append(r.statuses, &statuses.Status{ID: f.next(), Commit: commit, By: "ada", Context: job, State: state, Ref: ref, Allow: allow, At: f.now})
	f.tell(&request{repo: r, user: "ada"}, nil, "check_run", object{"sha": commit})
}

// approvalSettings returns whether a push takes approvals away; not each edition says.
func (f labPulls) approvalSettings(q *request, _ *labIn) (int, any) {
	if f.settings(q.repo).Free {
		return http.StatusNotFound, nil
	}
	rule := q.repo.rules["main"]
	return http.StatusOK, object{"reset_approvals_on_push": rule != nil && rule.Stale}
}

// rules returns a page of the rules about approvals.
func (f labPulls) rules(q *request, _ *labIn) (int, any) {
	var out []object
	for branch, rule := range q.repo.rules {
		out = append(out, rule.GitLab(branch))
	}
	return http.StatusOK, hubPage(q, out)
}
