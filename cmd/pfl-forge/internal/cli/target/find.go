package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// Find returns the intent that an argument names by its id, or by the id of one of its
// tasks. The task is nil if the argument names an intent.
func (t *Target) Find(ctx context.Context, arg string) (*forge.View, *forge.Task, error) {
	id, idErr := forge.ParseIntentID(arg)
	if idErr == nil {
		v, err := t.View(ctx, id)
		if err == nil {
			return v, nil, nil
		}
		idErr = err
	}
	task, err := forge.ParseTaskID(arg)
	if err != nil {
		return nil, nil, idErr
	}
	v, err := t.View(ctx, forge.IntentID(arg[:strings.LastIndexByte(arg, '-')]))
	if err != nil {
		return nil, nil, idErr
	}
	for i := range v.Tasks {
		if v.Tasks[i].ID == task {
			return v, &v.Tasks[i], nil
		}
	}
	return nil, nil, fmt.Errorf("intent %s has no task %s", v.Intent.ID, task)
}

// Dead returns the messages that no replica could handle, the oldest first.
func (t *Target) Dead(ctx context.Context) ([]bus.DeadLetter, error) {
	if t.Bus == nil {
		return nil, nil
	}
	return t.Bus.Dead(ctx)
}

// Summaries returns every intent of the project, sorted by id.
func (t *Target) Summaries(ctx context.Context) ([]forge.Summary, error) {
	if t.web != nil {
		list, err := t.overview(ctx, true)
		if err != nil {
			return nil, err
		}
		return list.Intents, nil
	}
	if t.Bus == nil {
		return nil, nil
	}
	if t.quick {
		return t.listed(ctx)
	}
	all, stored, err := t.Bus.Journal.List(ctx, t.Project)
	t.Stored = stored
	slices.SortFunc(all, func(a, b forge.Summary) int { return strings.Compare(string(a.Key.Intent), string(b.Key.Intent)) })
	return all, err
}

// listed is Summaries in a repository: it reads what was decided since the last
// list. Whoever holds the store keeps the list for the next command.
func (t *Target) listed(ctx context.Context) ([]forge.Summary, error) {
	list, err := t.Bus.Journal.ListSince(ctx, t.Project, forgedir.Listed(t.Repo.Root))
	if err != nil {
		return nil, err
	}
	if list.Kept != nil && t.Owner {
		forgedir.KeepListed(t.Repo.Root, list.Kept)
	}
	t.Stored = list.Sequences
	return list.Summaries, nil
}

// View returns everything that is known of an intent. That it does not exist is an error.
func (t *Target) View(ctx context.Context, id forge.IntentID) (*forge.View, error) {
	if t.web != nil {
		d, err := t.read(ctx, id)
		if err != nil {
			return nil, err
		}
		return &d.View, nil
	}
	if t.Bus == nil {
		return nil, NoIntent(id)
	}
	v, err := runner.View(ctx, t.Bus, t.Key(id))
	if errors.Is(err, bus.ErrNotFound) {
		return nil, NoIntent(id)
	}
	return &v, err
}

// Work returns how an intent that there is was carried out.
func (t *Target) Work(ctx context.Context, id forge.IntentID) (document.Work, error) {
	if t.web != nil {
		d, err := t.read(ctx, id)
		if err != nil {
			return document.Work{}, err
		}
		return d.Work, nil
	}
	_, work, err := runner.Report(ctx, t.Bus, t.Key(id))
	return work, err
}

// Broken says where the chain of an intent's journal is broken; empty if it holds, or cannot be
// read.
func (t *Target) Broken(ctx context.Context, id forge.IntentID) string {
	if t.web != nil {
		if d, err := t.read(ctx, id); err == nil {
			return d.Broken
		}
	}
	if t.Bus == nil {
		return ""
	}
	_, head, err := t.Bus.Journal.Load(ctx, t.Key(id))
	if err != nil || head.Broken == nil {
		return "" // whoever reads it next says so
	}
	return head.Broken.Error()
}

// NoIntent returns the error for the id of an intent that does not exist.
func NoIntent(id forge.IntentID) error {
	return fmt.Errorf("there is no intent %s; see `pfl-forge status`", id)
}
