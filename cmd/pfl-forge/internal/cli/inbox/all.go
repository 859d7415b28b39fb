package inbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// repeatable reports whether a choice can be made about many intents at once: one that cannot
// be taken back is made one by one, and so are answers.
//
// Approving, retrying and resuming can be followed by a pause or a cancel.
// Rejecting and cancelling end an intent for good.
func repeatable(c *pending.Choice) bool {
	return c == pending.Approve || c == pending.Retry || c == pending.Resume
}

// alike reports whether a choice about one intent can be made about another one as well: it
// waits for the same, a plan or a change of protected paths alike, and its risk is no higher.
//
// The bound on the risk keeps a person who looked at a small change from approving
// a dangerous one with the same key. For the other choices the risk does not count.
func alike(c *pending.Choice, one, other *forge.Summary) bool {
	return c.Fits(other) && other.Waiting == one.Waiting &&
		(c != pending.Approve || other.Activity == one.Activity && other.Risk.Rank() <= one.Risk.Rank())
}

// allHelp says in a line which intents a choice about all is about.
func allHelp(c *pending.Choice, s *forge.Summary) string {
	what := c.Name + " this one and all that are left and wait for the same"
	if c == pending.Approve {
		what = "approve this plan and all that are left with at most " + render.Risk(s.Risk)
	}
	return what + "; lists them and asks whether you are sure"
}

// chooseAll makes a choice about the decision that is shown and all alike that are left, after
// it has listed them.
//
// Each intent is sent with the plan that the list was made from, so the rules refuse
// those whose plan has changed since. Refusals are one error at the end, and do not keep
// the others back. Without the person's yes nothing is sent, and the same decision stays.
func (w *walk) chooseAll(ctx context.Context, d *pending.Decision, c *pending.Choice) (step, error) {
	list, err := w.allAlike(ctx, d, c)
	if err != nil {
		return stay, err
	}
	columns := render.Columns{Header: []string{"ID", "RISK", "PLAN", "TASKS", "TITLE", "WHY"}, Shrink: 5, Also: 4}
	for i := range list {
		s := &list[i]
		columns.Add(string(s.Key.Intent), string(s.Risk), s.Plan, fmt.Sprint(s.TaskCount), s.Title, render.Doing(s))
	}
	if err := w.app.Table(&columns); err != nil {
		return stay, err
	}
	question := strings.ToUpper(c.Name[:1]) + c.Name[1:] + " " + render.Count(len(list), "intent") + "?"
	sure, err := w.app.Confirm(ctx, w.console, question)
	if err != nil || !sure {
		return stay, err
	}
	err = target.Once(ctx, w.app, func(t *target.Target) error {
		b := pending.Batch{App: w.app}
		for i := range list {
			id := list[i].Key.Intent
			b.Send(ctx, t, string(id), c.Done, c.Event(t.Key(id), pending.Said{Plan: list[i].Plan}))
		}
		w.goesOn = t.Next()
		return b.End(t)
	})
	return next, err
}

// allAlike returns the intent of a decision, and those that are left and alike, as they are
// now. The decision's own summary comes first, and is the one that was shown; the others are
// read anew, in the order of the inbox, and those that were decided meanwhile are left out.
func (w *walk) allAlike(ctx context.Context, d *pending.Decision, c *pending.Choice) ([]forge.Summary, error) {
	t, err := target.Reader(ctx, w.app)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	all, err := t.Summaries(ctx)
	if err != nil {
		return nil, err
	}
	byID := map[forge.IntentID]*forge.Summary{}
	for i := range all {
		byID[all[i].Key.Intent] = &all[i]
	}
	list := []forge.Summary{d.Summary} // with the plan that the person sees
	for _, id := range w.left {
		if s := byID[id]; s != nil && alike(c, &d.Summary, s) {
			list = append(list, *s)
		}
	}
	return list, nil
}
