package implementer

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
)

const (
	// maxLookedAt bounds the merged changes that are looked through for neighbours, the newest.
	maxLookedAt = 50
	// maxNeighbours bounds those that a prompt shows.
	maxNeighbours = 8
)

// neighbour is a change that was merged, with the files of it that are near a task's.
type neighbour struct {
	// Title has the commit and its subject, made safe for a prompt.
	Title string
	// Files are those near the task's.
	Files []string

	nearness int
}

// mergedNeighbours returns the changes between the commit that the task's
// analysis read and the one that the attempt begins at, as far as they touch
// the task's files or files beside those: the nearest first, of equal ones the
// newest. An error is only logged: they are a hint, and the task goes on.
func (w *work) mergedNeighbours(ctx context.Context) []neighbour {
	analyzed, files := w.Command.Implement().Analyzed, w.Command.Task.RelevantFiles
	if analyzed == "" || analyzed == string(w.state.Base) || len(files) == 0 {
		return nil
	}
	list, err := w.mergedSince(ctx, analyzed, files)
	if err != nil {
		w.log.WarnContext(ctx, "cannot find out what was merged since a task's analysis; its agent does not learn of it", "task", w.Task(), "error", err)
		return nil
	}
	return list
}

// mergedSince is mergedNeighbours for a commit and files.
func (w *work) mergedSince(ctx context.Context, commit string, files []string) ([]neighbour, error) {
	analyzed, err := jobs.OID("analyzed", commit)
	if err != nil {
		return nil, err
	}
	log, err := w.Store.Log(ctx, analyzed, w.state.Base, maxLookedAt)
	if err != nil {
		return nil, err
	}
	var list []neighbour
	for i, l := range log {
		before := analyzed
		if i+1 < len(log) {
			before = log[i+1].Commit
		} else if len(log) == maxLookedAt {
			break // what is before it was not listed
		}
		near, err := w.near(ctx, before, l.Commit, files)
		if err != nil {
			return nil, err
		}
		if near.nearness > 0 {
			near.Title = l.Commit.Short() + " " + prompt.Line(l.Subject) + ":"
			list = append(list, near)
		}
	}
	slices.SortStableFunc(list, func(a, b neighbour) int { return cmp.Compare(b.nearness, a.nearness) })
	return list[:min(len(list), maxNeighbours)], nil
}

// near returns the paths of a change that are near one of the files.
func (w *work) near(ctx context.Context, before, commit git.OID, files []string) (neighbour, error) {
	changes, err := w.Store.Changes(ctx, before, commit)
	if err != nil {
		return neighbour{}, err
	}
	var l neighbour
	for _, c := range changes {
		nearness := 0
		for _, f := range files {
			nearness = max(nearness, nearnessOf(c.Path, f))
		}
		if nearness > 0 {
			l.Files, l.nearness = append(l.Files, c.Path), max(l.nearness, nearness)
		}
	}
	return l, nil
}

// nearnessOf returns 2 if a changed path is a file of a task or below it, 1 if
// it is in the same directory, otherwise
// 0. The files at the root are not near each other: they have nothing in common.
func nearnessOf(changed, file string) int {
	file = path.Clean(file)
	dir := path.Dir(file)
	switch {
	case changed == file || strings.HasPrefix(changed, file+"/"):
		return 2
	case dir != "." && path.Dir(changed) == dir:
		return 1
	}
	return 0
}
