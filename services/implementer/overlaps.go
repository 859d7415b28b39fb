package implementer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/jobs"
)

const (
	// overlapTimeout bounds how long the search for overlaps may delay a task. What
	// was found until then is reported.
	overlapTimeout = 15 * time.Second

	// maxOverlaps bounds the tasks that a rebase reports overlaps with.
	maxOverlaps = 50
	// maxOverlapFiles bounds the files of each overlap.
	maxOverlapFiles = 100
)

// findOverlaps returns the other tasks under way whose present changes do not merge
// with the change between two commits. An error is only logged: overlaps are a hint,
// and the task goes on.
func (i *Implementer) findOverlaps(ctx context.Context, j *jobs.Job, base, head git.OID) []forge.Overlap {
	ctx, cancel := context.WithTimeout(ctx, overlapTimeout)
	defer cancel()
	others, err := j.Store.TaskHeads(ctx)
	others = slices.DeleteFunc(others, func(h objects.TaskHead) bool { return h.Task == j.Task() })
	var clashes []objects.Overlap
	if err == nil {
		clashes, err = j.Store.Overlaps(ctx, base, head, others)
	}
	if err != nil {
		i.log.WarnContext(ctx, "cannot find all tasks that a change conflicts with; the next step looks again", "error", err)
	}
	var list []forge.Overlap
	for _, c := range clashes {
		if len(list) == maxOverlaps {
			break
		}
		if i.underWay(ctx, j.Repository, c.Task) {
			list = append(list, forge.Overlap{TaskID: forge.TaskID(c.Task), Files: c.Files[:min(len(c.Files), maxOverlapFiles)]})
		}
	}
	return list
}

// underWay reports whether a task may still change. The head of one that ended is
// deleted.
func (i *Implementer) underWay(ctx context.Context, r *jobs.Repository, task git.Name) bool {
	id, err := forge.ParseTaskID(string(task))
	if err != nil {
		return false
	}
	s, err := i.bus.Journal.Summary(ctx, forge.Key{Project: r.Project, Intent: id.Intent()})
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		i.log.WarnContext(ctx, "cannot ask how far a task has come", "other_task", id, "error", err)
		return false
	}
	if openTask(&s, id) {
		return true
	}
	if err := r.Store.Forget(ctx, nil, task); err != nil {
		i.log.WarnContext(ctx, "cannot forget the head of a task that ended; the next start does", "other_task", id, "error", err)
	}
	return false
}

// openTask reports whether a task of an intent may still change.
func openTask(s *forge.Summary, id forge.TaskID) bool {
	return !s.Status.Ended() && slices.ContainsFunc(s.Tasks, func(t forge.TaskSummary) bool {
		return t.ID == id && t.Status != forge.TaskDone && t.Status != forge.TaskFailed
	})
}
