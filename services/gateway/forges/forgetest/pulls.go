package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/bare"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/queues"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
)

// pulls answers all that is about commits, pull requests, their reviews and statuses.
type pulls struct{ *Fake }

// pull makes an issue a pull request.
type pull struct {
	// branch has the change, and goes into base. Both are of the repository itself: the fake has
	// no forks.
	branch, base string
	// head is the commit that the forge has seen last.
	head string
	// merge is the commit that came to be on the base, by whom; empty until then.
	merge, mergedBy string
	// reviews has the oldest first.
	reviews reviews.List
	queue   queues.Entry
	// draft and seen are of GitHub's dialect: whether it is one, and where the base was when the
	// head came.
	draft bool
	seen  string
	// how is the way in which it was merged, in whichever dialect that was
	// asked for; GitLab says it by the field that has the commit.
	how string
	// versions and fork are of GitLab's: the heads that it had, and whether the
	// branch is another project's.
	versions []version
	fork     bool
}

// of returns an issue that is a pull request as a merge of it needs it.
func (i *issue) of(r *repo) *bare.Pull {
	return &bare.Pull{Repository: r.name, Title: i.title, Number: i.number, Base: i.pull.base, Branch: i.pull.branch, Head: i.pull.head}
}

// says answers with a reason, as Gitea does.
func says(status int, reason string) (int, any) { return status, object{"message": reason} }

// openPull opens a pull request, or names the one that is open.
func (f pulls) openPull(q *request) (int, any) {
	head, base := q.repo.Head(q.in.Head), q.repo.Head(q.in.Base)
	if head == "" || base == "" {
		return says(http.StatusNotFound, "no such branch")
	}
	for _, i := range q.repo.issues {
		if p := i.pull; p != nil && !p.fork && i.state == "open" && p.branch == q.in.Head && p.base == q.in.Base {
			return says(http.StatusConflict, "pull request already exists for these targets")
		}
	}
	i := &issue{
		number: int64(len(q.repo.issues) + 1), by: q.user, title: q.in.Title, body: q.in.Body, state: "open", created: f.now, edited: f.now,
		pull: &pull{branch: q.in.Head, base: q.in.Base, head: head, seen: base, versions: []version{{head, f.now}}},
	}
	q.repo.issues = append(q.repo.issues, i)
	f.tell(q, i, "pull_request", object{"action": "opened"})
	return http.StatusCreated, f.pullObject(q.repo, i)
}

// isDraft reports whether a title is that of a draft.
func isDraft(title string) bool {
	title = strings.ToUpper(title)
	return strings.HasPrefix(title, "WIP:") || strings.HasPrefix(title, "[WIP]")
}

// pullObject returns a pull request as the API and the hooks do.
func (f pulls) pullObject(r *repo, i *issue) object {
	o := f.issueObject(r, i)
	delete(o, "pull_request")
	delete(o, "repository")
	p := i.pull
	where := object{"id": r.id, "full_name": r.name}
	base := r.Head(p.base)
	o["draft"], o["merged"], o["html_url"] = isDraft(i.title), p.merge != "", f.srv.URL+"/"+r.name+"/pulls"
	ref := p.branch
	if r.Head(ref) == "" { // it was deleted
		ref = fmt.Sprintf("refs/pull/%d/head", i.number)
	}
	o["head"] = object{"ref": ref, "label": p.branch, "sha": p.head, "repo_id": r.id, "repo": where}
	o["base"] = object{"ref": p.base, "sha": base, "repo_id": r.id, "repo": where}
	if p.merge != "" {
		o["merge_commit_sha"], o["merged_by"] = p.merge, f.user(p.mergedBy)
	}
	return o
}

// withPull wraps a function that is about a pull request: an issue that is none is not found.
func withPull(do func(*request) (int, any)) func(*request) (int, any) {
	return func(q *request) (int, any) {
		if q.issue.pull == nil {
			return http.StatusNotFound, nil
		}
		return do(q)
	}
}

// showPull returns a pull request.
func (f pulls) showPull(q *request) (int, any) { return http.StatusOK, f.pullObject(q.repo, q.issue) }

// findPull returns the first pull request that ever was of two branches, as Gitea does.
func (f pulls) findPull(q *request) (int, any) {
	for _, i := range q.repo.issues {
		if p := i.pull; p != nil && p.branch == q.PathValue("head") && p.base == q.PathValue("base") {
			return http.StatusOK, f.pullObject(q.repo, i)
		}
	}
	return http.StatusNotFound, nil
}

// listPulls returns a page of the pull requests into a base, the newest first.
func (f pulls) listPulls(q *request) (int, any) {
	var out []object
	for _, i := range slices.Backward(q.repo.issues) {
		if i.pull != nil && i.pull.base == q.URL.Query().Get("base_branch") {
			out = append(out, f.pullObject(q.repo, i))
		}
	}
	return http.StatusOK, pageOf(q, out)
}

// editPull changes the title and the text, for its author and for writers.
func (f pulls) editPull(q *request) (int, any) {
	status, _ := f.editIssue(q)
	if status < http.StatusMultipleChoices && q.in.Base != "" { // a person moves it to another branch
		q.issue.pull.base = q.in.Base
	}
	if status < http.StatusMultipleChoices && q.in.Body == "" && q.in.State == "" {
		q.issue.body = "" // an empty text is one as well
	}
	return status, f.pullObject(q.repo, q.issue)
}

// sync finds pushes to the branches of open pull requests: reviews of another change are stale
// then, and dismissed where the base's rule says so.
func (f pulls) sync(r *repo) {
	if r.Dir == "" {
		return
	}
	for _, i := range r.issues {
		p := i.pull
		if p == nil || i.state != "open" || p.fork {
			continue
		}
		head := r.Head(p.branch)
		if head == "" || head == p.head {
			continue
		}
		if p.queue.Strict {
			p.queue.Take(f.next(), i.by, "push", "", f.now)
		}
		p.head, p.seen, i.edited, p.versions = head, r.Head(p.base), f.now, append(p.versions, version{head, f.now})
		patch := r.Patch(p.base, head)
		for _, v := range p.reviews {
			v.Stale = v.Patch != patch
			if rule := r.rules[p.base]; rule != nil && rule.Stale && v.Stale && v.State == reviews.Approved {
				v.Dismissed, v.Official = true, false
			}
		}
		f.tell(&request{repo: r, user: i.by}, i, "pull_request_sync", object{"action": "synchronized"})
	}
}

// review adds a review. Everybody may write one; that of a writer is official; an author may
// not approve their own.
func (f pulls) review(q *request) (int, any) {
	p := q.issue.pull
	if q.in.Event == "APPROVED" && q.user == q.issue.by {
		return says(http.StatusUnprocessableEntity, "approve your own pull is not allowed")
	}
	official := q.repo.may(q.user, "write", "admin") && q.in.Event != reviews.Comment
	for _, v := range p.reviews { // the last word of a person counts
		if official && v.By == q.user && v.Official {
			v.Official = false
			v.Dismissed = v.State == reviews.Rejected
		}
	}
	v := &reviews.Review{
		ID: f.next(), By: q.user, State: q.in.Event, Body: q.in.Body, Commit: p.head, Patch: q.repo.Patch(p.base, p.head), Official: official, At: f.now,
	}
	for _, c := range q.in.Comments {
		v.Remarks = append(v.Remarks, &reviews.Remark{ID: f.next(), Body: c.Body, Path: c.Path, Line: c.Line, Commit: p.head})
	}
	p.reviews = append(p.reviews, v)
	q.issue.edited = f.now
	kind := map[string]string{"APPROVED": "approved", "REQUEST_CHANGES": "rejected"}[q.in.Event]
	if kind == "" {
		kind = "comment"
	}
	f.tell(q, q.issue, "pull_request_review_"+kind, object{"action": "reviewed"})
	return http.StatusOK, v.Gitea(f.user)
}

// listReviews returns a page of the reviews, the oldest first.
func (f pulls) listReviews(q *request) (int, any) {
	out := []object{}
	for _, v := range q.issue.pull.reviews {
		out = append(out, v.Gitea(f.user))
	}
	return http.StatusOK, pageOf(q, out)
}

// listRemarks returns the remarks of a review about lines.
func (f pulls) listRemarks(q *request) (int, any) {
	for _, v := range q.issue.pull.reviews {
		if v.ID == q.number("id") {
			return http.StatusOK, v.GiteaRemarks(f.user)
		}
	}
	return http.StatusNotFound, nil
}

// answer adds an answer to the discussion that a remark begins; nil if there is
// none. Everybody may.
func (f pulls) answer(q *request, first int64) (*reviews.Review, *reviews.Remark) {
	v := &reviews.Review{ID: f.next(), By: q.user, Body: q.in.Body, At: f.now}
	list, m := q.issue.pull.reviews.Answer(first, v, f.next())
	if q.issue.pull.reviews = list; m != nil {
		q.issue.edited = f.now
		f.tell(q, q.issue, "pull_request_review_comment", object{"action": "reviewed"})
	}
	return v, m
}

// Reviews hands over the reviews of a pull request, to be changed as people do
// at the pages of the forge.
func (f *Fake) Reviews(repository string, number int64, do func(reviews.List)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do(f.repos[strings.ToLower(repository)].issues[number-1].pull.reviews)
}
