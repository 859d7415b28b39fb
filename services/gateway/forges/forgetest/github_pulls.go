package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/events"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/queues"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/statuses"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/wire"
)

// hubPulls answers in GitHub's dialect what is about commits, pull requests, reviews and
// checks.
type hubPulls struct{ *Hub }

// invalid answers as GitHub does where something in a request is wrong.
func invalid(reason string) (int, any) {
	return http.StatusUnprocessableEntity, object{
		"message": "Validation Failed", "errors": []object{{"resource": "PullRequest", "code": "custom", "message": reason}},
	}
}

// hubPull returns a pull request as GitHub does.
func (f *Hub) hubPull(r *repo, i *issue) object {
	o, p := f.hubIssue(r, i), i.pull
	delete(o, "pull_request")
	delete(o, "repository_url")
	where := object{"id": r.id, "full_name": r.name}
	o["node_id"], o["draft"], o["merged"] = fmt.Sprintf("PR_%d_%d", r.id, i.number), p.draft, p.merge != ""
	o["html_url"] = fmt.Sprintf("%s/%s/pull/%d", f.srv.URL, r.name, i.number)
	o["head"] = object{"ref": p.branch, "label": r.name + ":" + p.branch, "sha": p.head, "repo": where}
	o["base"] = object{"ref": p.base, "label": r.name + ":" + p.base, "sha": p.seen, "repo": where}
	o["merged_by"], o["merged_at"] = nil, nil
	o["merge_commit_sha"] = p.head // that of a merge on trial, as far as anybody can tell
	if p.merge != "" {
		o["merge_commit_sha"], o["merged_by"], o["merged_at"] = p.merge, f.hubUser(p.mergedBy), i.edited
	}
	return o
}

// list returns a page of pull requests by their branches and state.
func (f hubPulls) list(q *request) (int, any) {
	want := q.URL.Query()
	list := slices.Clone(q.repo.issues)
	slices.Reverse(list)
	if want.Get("sort") == "updated" {
		slices.SortStableFunc(list, func(a, b *issue) int { return b.edited.Compare(a.edited) })
	}
	owner, _, _ := strings.Cut(q.repo.name, "/")
	var out []object
	for _, i := range list {
		p := i.pull
		if p == nil || want.Get("state") != "all" && want.Get("state") != i.state ||
			want.Get("base") != "" && want.Get("base") != p.base || want.Get("head") != "" && want.Get("head") != owner+":"+p.branch {
			continue
		}
		o := f.hubPull(q.repo, i)
		delete(o, "merged") // a list has neither
		delete(o, "merged_by")
		out = append(out, o)
	}
	return http.StatusOK, hubPage(q, out)
}

// open opens a pull request, for writers.
func (f hubPulls) open(q *request) (int, any) {
	if !q.repo.may(q.user, "write", "admin") {
		return says(http.StatusForbidden, "Must have push access.")
	}
	status, _ := pulls{f.Fake}.openPull(q)
	owner, _, _ := strings.Cut(q.repo.name, "/")
	switch status {
	case http.StatusConflict:
		return invalid("A pull request already exists for " + owner + ":" + q.in.Head + ".")
	case http.StatusNotFound:
		return invalid("The head or the base is invalid")
	}
	i := q.repo.issues[len(q.repo.issues)-1]
	i.pull.draft = q.in.Draft
	return http.StatusCreated, f.hubPull(q.repo, i)
}

// show returns a pull request.
func (f hubPulls) show(q *request) (int, any) { return http.StatusOK, f.hubPull(q.repo, q.issue) }

// edit changes the title, the text or the state.
func (f hubPulls) edit(q *request) (int, any) {
	if q.in.State == "open" && q.repo.Head(q.issue.pull.branch) == "" {
		return invalid("state cannot be changed. The " + q.issue.pull.branch + " branch has been deleted.")
	}
	if p := q.issue.pull; q.in.State == "open" && q.issue.state != "open" && !q.repo.Contains(q.repo.Head(p.branch), p.head) {
		return invalid("state cannot be changed. The " + p.branch + " branch was force-pushed or recreated.")
	}
	status, _ := pulls{f.Fake}.editPull(q)
	if status >= http.StatusBadRequest {
		return says(status, "Must have push access.")
	}
	return http.StatusOK, f.hubPull(q.repo, q.issue)
}

// merge merges a pull request, in the order of GitHub's own refusals. Every method makes new
// commits.
func (f hubPulls) merge(q *request) (int, any) {
	i, p := q.issue, q.issue.pull
	do := map[string]string{"": "merge", "merge": "merge", "squash": "squash", "rebase": "anew"}[q.in.MergeMethod]
	switch reason := q.repo.blocked(p); {
	case !q.repo.may(q.user, "write", "admin"):
		return says(http.StatusForbidden, "Must have push access.")
	case do == "":
		return invalid("merge_method is not included in the list")
	case p.merge != "" || i.state != "open":
		return says(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case p.draft:
		return says(http.StatusMethodNotAllowed, "Pull Request is still a draft")
	case q.in.SHA != "" && q.in.SHA != p.head:
		return says(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	case reason != "":
		return says(http.StatusMethodNotAllowed, reason)
	}
	merge, err := q.repo.Merge(do, p.base, p.head, i.of(q.repo).GitHub(q.repo.Repo, do, &q.in.Asked))
	if err != nil {
		return says(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	p.merge, p.how, p.mergedBy, i.state, i.edited = merge, do, q.user, "closed", f.now
	i.events = append(i.events, &event{id: f.next(), kind: "close", by: q.user, created: f.now, edited: f.now})
	f.tell(q, i, "pull_request", object{"action": "closed"})
	return http.StatusOK, object{"sha": merge, "merged": true, "message": "Pull Request successfully merged"}
}

// CarryReviews has reviews moved along with each push from now on, as GitHub does where stale
// ones are not dismissed.
func (f *Hub) CarryReviews() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.carries = true
}

// reviews returns a page of the reviews, the oldest first.
func (f hubPulls) reviews(q *request) (int, any) {
	var out []object
	for _, v := range q.issue.pull.reviews {
		commit := v.Commit
		if f.carries {
			commit = q.issue.pull.head
		}
		out = append(out, v.GitHub(f.hubUser, commit))
	}
	return http.StatusOK, hubPage(q, out)
}

// remarks returns a page of the remarks about lines of all reviews.
func (f hubPulls) remarks(q *request) (int, any) {
	return http.StatusOK, hubPage(q, q.issue.pull.reviews.GitHubRemarks(f.hubUser, q.issue.pull.head))
}

// answer adds an answer to a discussion, by its first remark.
func (f hubPulls) answer(q *request) (int, any) {
	v, m := pulls{f.Fake}.answer(q, q.number("id"))
	if m == nil {
		return says(http.StatusNotFound, "Not Found")
	}
	return http.StatusCreated, v.GitHubRemark(f.hubUser, m, q.issue.pull.head)
}

// branch returns a branch as a ref.
func (f hubPulls) branch(q *request) (int, any) {
	name := q.PathValue("branch")
	if q.repo.Head(name) == "" {
		return says(http.StatusNotFound, "Not Found")
	}
	return http.StatusOK, object{"ref": "refs/heads/" + name, "object": object{"sha": q.repo.Head(name), "type": "commit"}}
}

// compare counts the commits that the second of two has and the first has not.
func (f hubPulls) compare(q *request) (int, any) {
	status, out := q.repo.Compare(q.PathValue("range"))
	if status != http.StatusOK {
		return says(status, "Not Found")
	}
	n, _ := out.(object)["total_commits"].(int)
	return status, object{"ahead_by": n, "total_commits": n, "commits": []object{}}
}

// statuses returns a page of all statuses of a commit, the newest first.
func (f hubPulls) statuses(q *request) (int, any) {
	return http.StatusOK, hubPage(q, q.repo.statuses.Of(q.PathValue("sha")).Show(statuses.GitHub(f.hubUser)))
}

// setStatus writes a status, for writers.
func (f hubPulls) setStatus(q *request) (int, any) {
	if q.in.State == "" {
		return invalid("State is not included in the list")
	}
	if len([]rune(q.in.Description)) > 140 {
		return invalid("description is too long (maximum is 140 characters)")
	}
	status, out := pulls{f.Fake}.setStatus(q)
	if status != http.StatusCreated {
		return status, out
	}
	return status, statuses.GitHub(f.hubUser)(q.repo.statuses[len(q.repo.statuses)-1])
}

// Check writes a check run, as an App does.
func (f *Hub) Check(c CheckRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, c)
	r := f.repos[strings.ToLower(c.Repository)]
	f.tell(&request{repo: r, user: AppBot}, nil, "check_run", object{
		"action": "created", "check_run": object{"name": c.Name, "head_sha": c.Commit, "status": c.Status},
	})
}

// checkRuns returns a page of the check runs of a commit.
func (f hubPulls) checkRuns(q *request) (int, any) {
	out := []object{}
	for i, c := range f.runs {
		if !strings.EqualFold(c.Repository, q.repo.name) || c.Commit != q.PathValue("sha") {
			continue
		}
		out = append(out, c.GitHub(i+1, f.srv.URL))
	}
	return http.StatusOK, object{"total_count": len(out), "check_runs": hubPage(q, out)}
}

// protection returns that of a branch, to administrators.
func (f hubPulls) protection(q *request) (int, any) {
	rule := q.repo.rules[q.PathValue("branch")]
	switch {
	case !q.repo.may(q.user, "admin"):
		return says(http.StatusForbidden, "Resource not accessible by integration")
	case rule == nil:
		return says(http.StatusNotFound, "Branch not protected")
	}
	return http.StatusOK, rule.GitHub(f.srv.URL)
}

// RuleSet adds a rule of a ruleset to a branch.
func (f *Hub) RuleSet(repository, branch, kind string, parameters map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := strings.ToLower(repository) + " " + branch
	f.ruleSets[key] = append(f.ruleSets[key], object{"type": kind, "parameters": parameters})
}

// rules returns a page of the rules of rulesets for a branch.
func (f hubPulls) rules(q *request) (int, any) {
	return http.StatusOK, hubPage(q, f.ruleSets[strings.ToLower(q.repo.name)+" "+q.PathValue("branch")])
}

// graphQL answers the questions that are asked there. It does not parse queries: it tells those
// that this program asks by a word in each, and finds what a mutation is about by its node id.
func (f hubPulls) graphQL(q *request) (int, any) {
	fails := func(kind, message string) (int, any) {
		return http.StatusOK, object{"data": nil, "errors": []object{{"type": kind, "message": message}}}
	}
	text := func(name string) string { s, _ := q.in.Variables[name].(string); return s }
	if !strings.HasPrefix(q.in.Query, "mutation") {
		number, _ := q.in.Variables["number"].(float64)
		r := f.repos[strings.ToLower(text("owner")+"/"+text("name"))]
		ofIssue := strings.Contains(q.in.Query, "userContentEdits")
		if r == nil || int(number) < 1 || int(number) > len(r.issues) || (r.issues[int(number)-1].pull == nil) != ofIssue {
			return fails("NOT_FOUND", "Could not resolve to a PullRequest, or to an Issue")
		}
		if ofIssue {
			return http.StatusOK, object{"data": f.edits(r.issues[int(number)-1])}
		}
		if strings.Contains(q.in.Query, "mergeQueue") {
			return http.StatusOK, object{"data": f.queued(r, r.issues[int(number)-1])}
		}
		threads := r.issues[int(number)-1].pull.reviews.GitHubThreads(q.in.Variables["after"])
		return http.StatusOK, object{"data": object{"repository": object{"pullRequest": object{"reviewThreads": threads}}}}
	}
	for _, r := range f.repos {
		for _, i := range r.issues {
			if fmt.Sprintf("PR_%d_%d", r.id, i.number) == text("id") && i.pull != nil {
				if !r.may(q.user, "write", "admin") {
					return fails("FORBIDDEN", "Resource not accessible by integration")
				}
				if queues.IsMutation(q.in.Query) {
					if refused := f.mutateQueue(q, r, i); refused != "" {
						return fails("UNPROCESSABLE", refused)
					}
					return http.StatusOK, object{"data": object{}}
				}
				i.pull.draft, i.edited = strings.Contains(q.in.Query, "convertPullRequestToDraft"), f.now
				return http.StatusOK, object{"data": object{}}
			}
		}
	}
	return fails("NOT_FOUND", "Could not resolve to a node")
}

// hubSend returns the sending of a delivery in GitHub's dialect.
func (f *Hub) hubSend(q *request, i *issue, h wire.Hook, event, id string, told object) func() {
	e := events.Event{Name: event, Told: told, By: f.hubUser(q.user), Repository: object{"id": q.repo.id, "full_name": q.repo.name}}
	if i != nil {
		e.Issue = f.hubIssue(q.repo, i)
		if i.pull != nil {
			e.Pull = f.hubPull(q.repo, i)
		}
	}
	name, body := e.GitHub()
	return func() { h.Post(name, id, body) }
}
