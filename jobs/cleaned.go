package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/git"
)

// FollowCleaned drops the local state of intents that any replica has cleaned at the
// origin, until ctx ends: first of those that were cleaned before, then of each that
// the bus announces. Where that fails it is logged, and done at the next start.
func (s *Set) FollowCleaned(ctx context.Context, b *bus.Bus) error {
	warn := func(project forge.ProjectID, err error) {
		if err != nil && ctx.Err() == nil {
			s.host.Log.WarnContext(ctx, "cannot let go of what cleaned intents left; the next start does", "project", project, "error", err)
		}
	}
	err := b.Live.FollowCleaned(ctx, func(project forge.ProjectID, intents []forge.IntentID) {
		r, err := s.Get(project)
		if err != nil {
			return // another process serves it
		}
		over, err := onlyEnded(ctx, b, project, intents)
		warn(project, errors.Join(err, r.Drop(ctx, over...)))
	})
	if err != nil {
		return err
	}
	return s.Prepare(ctx, func(ctx context.Context, r *Repository) error {
		warn(r.Project, r.dropMissing(ctx, b))
		return nil
	})
}

// onlyEnded returns the intents that the journal says are over. An announcement is
// not enough to delete something.
func onlyEnded(ctx context.Context, b *bus.Bus, project forge.ProjectID, intents []forge.IntentID) ([]forge.IntentID, error) {
	var over []forge.IntentID
	var errs []error
	for _, id := range intents {
		summary, err := b.Journal.Summary(ctx, forge.Key{Project: project, Intent: id})
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			errs = append(errs, err)
		}
		if err == nil && Needed(&summary) == "" {
			over = append(over, id)
		}
	}
	return over, errors.Join(errs...)
}

// dropMissing drops the intents that are over, and of which the origin keeps nothing.
func (r *Repository) dropMissing(ctx context.Context, b *bus.Bus) error {
	here, err := r.Store.HiddenHere(ctx)
	if err != nil || len(here) == 0 {
		return err
	}
	there, err := r.Store.HiddenRefs(ctx)
	if err != nil {
		return err
	}
	var gone []forge.IntentID
	for name := range here {
		if len(there[name]) == 0 {
			gone = append(gone, forge.IntentID(name))
		}
	}
	slices.Sort(gone)
	over, err := onlyEnded(ctx, b, r.Project, gone)
	return errors.Join(err, r.Drop(ctx, over...))
}

// Drop removes this process's state of intents that are over: the hidden refs in its
// clone, and the checkouts and state directories of their tasks. It waits for work
// that is under way in them.
func (r *Repository) Drop(ctx context.Context, intents ...forge.IntentID) error {
	if len(intents) == 0 {
		return nil
	}
	names := make([]git.Name, len(intents))
	for i, id := range intents {
		names[i] = git.Name(id)
	}
	entries, err := os.ReadDir(r.StateDir(""))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var tasks []string
	for _, e := range entries {
		if id, err := forge.ParseTaskID(e.Name()); err == nil && slices.Contains(intents, id.Intent()) {
			tasks = append(tasks, e.Name())
		}
	}
	return errors.Join(r.Retire(ctx, tasks...), r.Store.SweepHere(ctx, names...))
}

// Needed says why what an intent left, such as commits of its attempts and its
// agents' conversations, may still be needed, to go after the intent's id;
// empty if the intent is over for good.
func Needed(s *forge.Summary) string {
	switch {
	case s.Status.Failed():
		return fmt.Sprintf("is %s and can be retried: cancel it first", s.Status)
	case !s.Status.Ended():
		return fmt.Sprintf("is %s: it has not ended", s.Status)
	case len(s.Open) > 0:
		return fmt.Sprintf("is %s, but its %s has not ended yet: try again in a moment", s.Status, s.Open[0].Step)
	}
	return ""
}
