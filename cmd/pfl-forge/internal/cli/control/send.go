package control

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/pending"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Chooser returns the choice about one of the intents that a person named, or an error if
// there is none. The view is nil if it is about the whole project.
// The error is about this intent alone: the others are sent.
type Chooser func(v *forge.View) (*pending.Choice, pending.Said, error)

// Always returns the Chooser of a command that does the same about every intent.
func Always(c *pending.Choice, said *pending.Said) Chooser {
	return func(*forge.View) (*pending.Choice, pending.Said, error) { return c, *said, nil }
}

// Request describes a choice of a command about the intents and tasks that its arguments
// name.
type Request struct {
	// All says that it is about the whole project, and has no arguments.
	All bool
	// Format is the one in which the rulings are printed; the zero value is
	// text.
	Format render.Format
	Choose Chooser
}

// Send makes the choice of a command about the intents or tasks that its arguments name, or about
// the project. One that is refused does not keep the others back. They are sent in the order of
// the arguments, over one connection. Refusals and unknown ids are one error at the end.
func Send(ctx context.Context, a *kit.App, args []string, r *Request) error {
	switch {
	case r.All && len(args) > 0:
		return kit.Usage(errors.New("--all takes no ids"))
	case !r.All && len(args) == 0:
		return kit.Usage(kit.MissingID("the id of an intent or a task"))
	}
	return target.Once(ctx, a, func(t *target.Target) error {
		b := pending.Batch{App: a, Format: r.Format}
		if r.All {
			send(ctx, t, &b, "the project", nil, nil, r)
		}
		for _, arg := range args {
			v, task, err := t.Find(ctx, arg)
			if err != nil {
				b.Fail(err)
				continue
			}
			send(ctx, t, &b, arg, v, task, r)
		}
		return b.End(t)
	})
}

// send makes the choice about one intent, about a task of it, or without a view
// about the project. v and task are nil about the project, task alone about a
// whole intent. A task has no machine of its own, so its intent's is told.
func send(ctx context.Context, t *target.Target, b *pending.Batch, who string, v *forge.View, task *forge.Task, r *Request) {
	c, said, err := r.Choose(v)
	if err != nil {
		b.Fail(err)
		return
	}
	to := t.Key("").ProjectKey()
	if v != nil {
		to = t.Key(v.Intent.ID)
	}
	if task != nil {
		said.Task = task.ID
	}
	b.GoesOn = b.GoesOn || c.GoesOn
	b.Send(ctx, t, who, c.Done, c.Event(to, said))
}
