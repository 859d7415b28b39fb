package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// approveAll approves everything that waits for approval, with exactly the plans that are listed.
// A plan that changes between the list and the yes is refused, and the others go on. Without a
// terminal and without --yes it is a mistake in the command line, before anything is read.
func approveAll(ctx context.Context, a *kit.App, yes bool) error {
	c, ok := a.Terminal()
	if ok {
		defer c.Close()
	} else if !yes {
		return kit.Usage(errors.New("--all asks for confirmation, and there is no terminal: give --yes, or the ids"))
	}
	list, err := approvable(ctx, a)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.Say("nothing waits for approval")
		return nil
	}
	columns := render.Columns{Header: []string{"ID", "RISK", "PLAN", "TASKS", "WHY", "TITLE"}, Shrink: 5}
	for i := range list {
		s := &list[i]
		columns.Add(string(s.Key.Intent), string(s.Risk), s.Plan, fmt.Sprint(s.TaskCount), s.Reason, s.Title)
	}
	if err := a.Table(&columns); err != nil {
		return err
	}
	if !yes {
		sure, err := a.Confirm(ctx, c, "Approve "+render.Count(len(list), "plan")+"?")
		if err != nil || !sure {
			return err
		}
	}
	return target.Once(ctx, a, func(t *target.Target) error {
		b := pending.Batch{App: a}
		for i := range list {
			id := list[i].Key.Intent
			b.Send(ctx, t, string(id), pending.Approve.Done, pending.Approve.Event(t.Key(id), pending.Said{Plan: list[i].Plan}))
		}
		a.Say("%s", t.Next())
		return b.End(t)
	})
}

// approvable returns the intents that wait for approval.
// They are sorted by id, as all summaries.
func approvable(ctx context.Context, a *kit.App) ([]forge.Summary, error) {
	t, err := target.Reader(ctx, a)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	var list []forge.Summary
	for i := range all {
		if pending.Approve.Fits(&all[i]) {
			list = append(list, all[i])
		}
	}
	return list, err
}
