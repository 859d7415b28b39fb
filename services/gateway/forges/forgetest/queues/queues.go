// Package queues has the merge queue of a forge for tests: who was put in, and
// taken out, and how the dialects of Gitea, GitHub and GitLab say so.
//
// Package forgetest keeps an Entry with each pull request and answers with it. Events are kept
// in order and never removed, since the gateway finds out from them how an entry left the queue.
package queues

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// There is one queue for all dialects, in which each of them sees what it has a
// word for: GitHub the last event of a pull request, with a reason in one word;
// GitLab a note, in English; Gitea an entry of the timeline without any reason.

// Object is a JSON object.
type Object = map[string]any

// Entry is a pull request with regard to the queue. Its zero value was never there.
type Entry struct {
	// In says that it is queued, for the commit Head, since By put it there.
	In       bool
	Head, By string
	// Message is that of the commit that will be made.
	Message string
	// Strict says that a push takes it out, other than of auto-merge on Gitea
	// and GitHub, and Train that it is in a train.
	Strict, Train bool
	// Events have the oldest first.
	Events []Event
}

// Event is that it was put in, or taken out. GitHub has a kind of event for
// each of these, and another two for auto-merge.
type Event struct {
	ID int64
	In bool
	// Cause is GitHub's word for why it was taken out: failed_checks,
	// merge_conflict, manual or merge.
	Cause string
	// By is the login of the account that did that; empty for the forge.
	By string
	// Commit is the one that the queue tried: on GitHub that of its own branch.
	Commit string
	At     time.Time
}

// Put puts it in, for a head.
func (e *Entry) Put(id int64, by, head string, at time.Time) {
	e.In, e.Head, e.By = true, head, by
	e.Events = append(e.Events, Event{ID: id, In: true, By: by, Commit: head, At: at})
}

// Take takes it out, if it is in.
func (e *Entry) Take(id int64, by, cause, commit string, at time.Time) {
	if e.In {
		e.In = false
		e.Events = append(e.Events, Event{ID: id, Cause: cause, By: by, Commit: commit, At: at})
	}
}

// Mutation is one of GitHub's about the queue or auto-merge, of a repository that has one of them.
type Mutation struct {
	ID          int64
	By          string
	At          time.Time
	Query, Head string
	Queue, Auto bool
}

// IsMutation reports whether a query is one.
func IsMutation(query string) bool {
	return strings.Contains(query, "queuePullRequest") || strings.Contains(query, "PullRequestAutoMerge")
}

// Mutate carries one out for a pull request at a head, which may be kept from
// being merged by something. It returns why it is refused; empty if it is not.
func (e *Entry) Mutate(m *Mutation, head, blocked string) (refused string) {
	into := strings.Contains(m.Query, "enqueuePullRequest")
	switch {
	case strings.Contains(m.Query, "dequeuePullRequest"), strings.Contains(m.Query, "disablePullRequestAutoMerge"):
		e.Take(m.ID, m.By, "manual", "", m.At)
		return ""
	case m.Head != "" && m.Head != head:
		return "Head sha didn't match expected oid"
	case into && !m.Queue, !into && !m.Auto:
		return "Merge queue is not enabled for this branch"
	case into && blocked != "":
		return "Pull request is not mergeable: " + blocked
	case !into && blocked == "":
		return "Pull request Pull request is in clean status"
	}
	e.Strict = into
	e.Put(m.ID, m.By, head, m.At)
	return ""
}

// GitHub returns a repository with a pull request as GraphQL does, with what it
// says of a queue, or of auto-merge where there is none.
func (e *Entry) GitHub(o Object, queue, auto bool) Object {
	out := Object{"autoMergeAllowed": auto, "mergeQueue": nil, "pullRequest": o}
	if queue {
		out["mergeQueue"] = Object{"id": "MQ_1"}
	}
	o["mergeQueueEntry"], o["autoMergeRequest"] = nil, nil
	switch {
	case e.In && queue:
		o["mergeQueueEntry"] = Object{"position": 1}
	case e.In:
		o["autoMergeRequest"] = Object{"enabledAt": e.Events[len(e.Events)-1].At}
	}
	nodes := []Object{}
	if n := len(e.Events); n > 0 {
		last := e.Events[n-1]
		node := Object{"__typename": name(queue, last.In)}
		if !last.In {
			node["id"], node["reason"], node["actor"] = fmt.Sprint("RE_", last.ID), last.Cause, nil
			if last.By != "" {
				login, bot := strings.CutSuffix(last.By, "[bot]")
				node["actor"] = Object{"login": login, "__typename": map[bool]string{true: "Bot", false: "User"}[bot]}
			}
			if queue {
				node["beforeCommit"] = Object{"oid": last.Commit}
			}
		}
		nodes = append(nodes, node)
	}
	o["timelineItems"] = Object{"nodes": nodes}
	return Object{"repository": out}
}

// name returns GitHub's word for an event.
func name(queue, in bool) string {
	return map[bool]map[bool]string{
		true:  {true: "AddedToMergeQueueEvent", false: "RemovedFromMergeQueueEvent"},
		false: {true: "AutoMergeEnabledEvent", false: "AutoMergeDisabledEvent"},
	}[queue][in]
}

// Gitea returns the kind of an event in a timeline.
func (v *Event) Gitea() string {
	if v.In {
		return "pull_scheduled_merge"
	}
	return "pull_cancel_scheduled_merge"
}

// Author returns in whose name GitLab writes its note of an event: what it did
// by itself, in that of whoever put the merge request in.
func (e *Entry) Author(v *Event) string { return cmp.Or(v.By, e.By) }

// GitLab returns the words of the note that GitLab writes of an event.
func (v *Event) GitLab(train bool) string {
	why := map[string]string{
		"failed_checks": "the pipeline did not succeed", "merge_conflict": "there is a conflict", "push": "the source branch was updated",
	}[v.Cause]
	switch {
	case v.In && train:
		return "started a merge train"
	case v.In:
		return "enabled an automatic merge when the pipeline for " + v.Commit + " succeeds"
	case train:
		return strings.TrimSuffix("removed this merge request from the merge train because "+why, " because ")
	case why == "":
		return "canceled the automatic merge"
	}
	return "aborted the automatic merge because " + why
}
