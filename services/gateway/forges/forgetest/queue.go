package forgetest

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/queues"
)

// Queues is the merge queue of the forge, which all dialects share. It merges,
// and takes out, when a test says so.
type Queues struct{ *Fake }

// On has a repository have a merge queue (GitHub), or merge trains (GitLab).
// autoMerge has it merge by itself on GitHub; the other forges always can.
func (f Queues) On(repository string, queue, autoMerge bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.repos[strings.ToLower(repository)]
	r.queue, r.auto = queue, autoMerge
}

// Merge has the queue merge a pull request on the tip, and returns the commit
// there; empty if it is not queued, or conflicts.
func (f Queues) Merge(repository string, number int64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.repos[strings.ToLower(repository)]
	pulls(f).sync(r)
	i := r.issues[number-1]
	p := i.pull
	if !p.queue.In {
		return ""
	}
	merge, err := r.Merge("merge", p.base, p.head, cmp.Or(p.queue.Message, i.title))
	if err != nil {
		return ""
	}
	p.how = "merge"
	p.queue.Take(f.next(), "", "merge", merge, f.now)
	p.merge, p.mergedBy, i.state, i.edited = merge, p.queue.By, "closed", f.now
	f.tell(&request{repo: r, user: i.by}, i, "pull_request", object{"action": "closed"})
	return merge
}

// Drop has a pull request taken out of the queue: because of failed_checks on a
// commit, of a merge_conflict, or by a person (manual).
func (f Queues) Drop(repository string, number int64, cause, by, commit string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.repos[strings.ToLower(repository)]
	i := r.issues[number-1]
	i.pull.queue.Take(f.next(), by, cause, commit, f.now)
	i.edited = f.now
	f.tell(&request{repo: r, user: i.by}, i, "pull_request", object{"action": "dequeued"})
}

// Head returns the commit for which a pull request is queued; empty if it is not.
func (f Queues) Head(repository string, number int64) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.repos[strings.ToLower(repository)].issues[number-1].pull.queue; e.In {
		return e.Head
	}
	return ""
}

// schedule has Gitea merge when the checks have passed; false if it can be
// merged now. Gitea compares no head here.
func (f pulls) schedule(q *request) (status int, scheduled bool) {
	p := q.issue.pull
	switch {
	case p.queue.In:
		return http.StatusConflict, true
	case q.issue.state != "open" || q.repo.blocked(p) == "":
		return 0, false
	}
	p.queue.Message = q.issue.of(q.repo).Gitea(q.in.Do, &q.in.Asked)
	p.queue.Put(f.next(), q.user, p.head, f.now)
	return http.StatusCreated, true
}

// unschedule takes that back.
func (f pulls) unschedule(q *request) (int, any) {
	if !q.issue.pull.queue.In {
		return http.StatusNotFound, nil
	}
	q.issue.pull.queue.Take(f.next(), q.user, "manual", "", f.now)
	return http.StatusNoContent, nil
}

// mutateQueue answers GitHub's mutations about the queue and auto-merge.
func (f hubPulls) mutateQueue(q *request, r *repo, i *issue) (refused string) {
	head, _ := q.in.Variables["head"].(string)
	q.in.HubTitle, _ = q.in.Variables["title"].(string)
	q.in.HubBody, _ = q.in.Variables["body"].(string)
	i.pull.queue.Message = i.of(r).GitHub(r.Repo, "merge", &q.in.Asked)
	m := queues.Mutation{ID: f.next(), By: q.user, At: f.now, Query: q.in.Query, Head: head, Queue: r.queue, Auto: r.auto}
	i.edited = f.now
	p, there := i.pull, func() bool { return true } // a queue tries it on the tip
	return p.queue.Mutate(&m, p.head, r.rules[p.base].Blocked(r.statuses.Latest(p.head), p.reviews, there))
}

// queued returns a pull request as GraphQL does where the queue is asked for.
func (f hubPulls) queued(r *repo, i *issue) object {
	return i.pull.queue.GitHub(object{"id": f.hubPull(r, i)["node_id"], "headRefOid": i.pull.head}, r.queue, r.auto)
}

// enqueue puts a merge request into a merge train.
func (f labPulls) enqueue(q *request, in *labIn) (int, any) {
	p := q.issue.pull
	switch {
	case !q.repo.queue:
		return says(http.StatusForbidden, "403 Forbidden")
	case in.SHA != p.head, p.queue.In:
		return says(http.StatusConflict, "409 Conflict")
	}
	p.queue.Strict, p.queue.Train, p.queue.Message = true, true, q.issue.of(q.repo).GitLab("merge", &in.Asked)
	p.queue.Put(f.next(), q.user, p.head, f.now)
	return http.StatusCreated, []object{{
		"id": p.queue.Events[len(p.queue.Events)-1].ID, "status": "idle", "target_branch": p.base, "merge_request": object{"iid": q.issue.number},
	}}
}

// cancel has a merge request not merged by itself any more.
func (f labPulls) cancel(q *request, _ *labIn) (int, any) {
	_, _ = pulls{f.Fake}.unschedule(q)
	return http.StatusCreated, f.object(q.repo, q.issue)
}
