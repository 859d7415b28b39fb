package gitlab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/rest"
)

// GitLab merges by itself when the pipeline has passed, for the head that was named: a
// push ends that. Where the project has merge trains, it puts the merge request into one.

// queued is the part of a Client that has GitLab merge by itself. It is a type
// of its own, as members is: what a project does on its own account is a matter
// of its settings, and of notes in which alone it says why it stopped.
type queued struct{ c *Client }

// What the notes say is in English on each instance: system notes are not translated.
// One that begins otherwise is none of these, and one with another reason is for people.

// removals begin the notes by which GitLab says that it will not merge by itself any
// more: what it aborts, it gives a reason of, and what a person cancels has none.
var removals = []string{
	"aborted the automatic merge", "canceled the automatic merge", "removed this merge request from the merge train",
	"aborted automatic add to merge train", "cancelled automatic add to merge train",
}

// Queue returns whether a merge request is merged by itself. Its notes say why it is not any more.
func (l queued) Queue(ctx context.Context, repository string, number int64, _ git.Branch) (q forges.Queue, err error) {
	project, err := l.c.project(ctx, repository)
	if err != nil {
		return q, err
	}
	j, err := l.c.raw(ctx, repository, number)
	if err != nil {
		return q, err
	}
	q.Tests, q.In = project.Trains, j.Later
	if q.In {
		return q, nil
	}
	path, err := l.c.path(ctx, repository, "merge_requests", number, "notes")
	if err != nil {
		return q, err
	}
	// The newest first: the last word about it counts.
	return q, rest.Shrink(page, func(size int) error {
		query := fmt.Sprintf("%s?sort=desc&order_by=created_at&per_page=%d", path, size)
		return rest.List(ctx, l.c.Client, query, size, func(list []noteJSON) (int, bool) {
			for i := range list {
				n := &list[i]
				if !n.System || !strings.Contains(n.Body, "automatic merge") && !strings.Contains(n.Body, "merge train") {
					continue
				}
				q.Out = n.removal()
				return len(list), true
			}
			return len(list), false
		})
	})
}

// removal returns that a merge request was taken out; nil of a note that says
// something else. A push takes it out as well, and a merge.
func (j *noteJSON) removal() *forges.Removal {
	body := strings.ToLower(j.Body)
	out := false
	for _, begins := range removals {
		out = out || strings.HasPrefix(body, begins)
	}
	if !out || strings.Contains(body, "source branch was updated") {
		return nil
	}
	r := &forges.Removal{ID: fmt.Sprint(j.ID), Cause: forges.CauseOther, Reason: rest.Reason(j.Body)}
	// The author of a note with a reason is whoever put it in, although GitLab took it out.
	if j.Author != nil && !strings.Contains(body, " because ") {
		r.By = j.Author.Login
	}
	switch {
	case strings.Contains(body, "conflict"):
		r.Cause = forges.CauseConflict
	case strings.Contains(body, "pipeline"), strings.Contains(body, "failed"):
		r.Cause = forges.CauseChecks
	}
	return r
}

// Enqueue has GitLab merge by itself, or puts a merge request into the merge
// train of a project that has one. What may be merged at once, it merges.
func (l queued) Enqueue(ctx context.Context, repository string, number int64, _ git.Branch, head git.OID) error {
	if _, err := git.ParseOID(string(head)); err != nil {
		return fmt.Errorf("head: %w", err)
	}
	project, err := l.c.project(ctx, repository)
	if err != nil {
		return err
	}
	j, err := l.c.raw(ctx, repository, number)
	if err != nil || j.Later {
		return err
	}
	if project.Trains {
		path, err := l.c.path(ctx, repository, "merge_trains", "merge_requests", number)
		if err == nil {
			err = l.c.Call(ctx, http.MethodPost, path, map[string]any{"sha": string(head), "auto_merge": true}, nil)
		}
		return err
	}
	path, err := l.c.path(ctx, repository, "merge_requests", number, "merge")
	if err != nil {
		return err
	}
	in, err := l.c.order(ctx, repository, number, head)
	if err != nil {
		return err
	}
	in["auto_merge"] = true
	err = l.c.Call(ctx, http.MethodPut, path, in, nil)
	if refused, ok := errors.AsType[*forges.RefusedError](err); ok && refused.Code != http.StatusConflict {
		return l.c.why(ctx, repository, number, refused)
	}
	return err
}

// Dequeue has GitLab not merge by itself any more, and takes a merge request off its train.
func (l queued) Dequeue(ctx context.Context, repository string, number int64) error {
	j, err := l.c.raw(ctx, repository, number)
	if err != nil || !j.Later {
		return err
	}
	path, err := l.c.path(ctx, repository, "merge_requests", number, "cancel_merge_when_pipeline_succeeds")
	if err != nil {
		return err
	}
	return l.c.Call(ctx, http.MethodPost, path, nil, nil)
}
