package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// approveAll approves everything that waits for approval, with exactly the plans that
// are listed.
func (a *app) approveAll(ctx context.Context, yes bool) error {
	c, ok := a.terminal()
	if ok {
		defer c.Close()
	} else if !yes {
		return usageError{errors.New("--all asks on a terminal, and there is none: give --yes, or the ids")}
	}
	list, err := a.approvable(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.say("nothing waits for approval")
		return nil
	}
	columns := render.Columns{Header: []string{"ID", "RISK", "PLAN", "TASKS", "WHY", "TITLE"}, Shrink: 5}
	for i := range list {
		s := &list[i]
		columns.Add(string(s.Key.Intent), string(s.Risk), s.Plan, fmt.Sprint(s.TaskCount), s.Reason, s.Title)
	}
	if err := columns.Write(a.out, width(a.out), a.style(a.out)); err != nil {
		return err
	}
	if !yes {
		sure, err := a.confirm(ctx, c, "approve "+render.Count(len(list), "plan")+"?")
		if err != nil || !sure {
			return err
		}
	}
	return a.once(ctx, func(t *target) error {
		var errs []error
		for i := range list {
			id := list[i].Key.Intent
			ruling, err := t.ask(ctx, forge.Event{To: t.key(id), Message: &forge.Approve{Plan: list[i].Plan}})
			if err == nil {
				err = a.report(id, "approved", ruling)
			}
			errs = append(errs, err)
		}
		a.say("%s", t.next())
		return errors.Join(errs...)
	})
}

func (a *app) approvable(ctx context.Context) ([]forge.Summary, error) {
	t, err := a.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer t.close()
	all, err := t.summaries(ctx)
	var list []forge.Summary
	for i := range all {
		if all[i].Waiting == forge.WaitingApproval {
			list = append(list, all[i])
		}
	}
	return list, err
}
