package repository

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
)

// Retire gives back the checkouts of these names and removes their state, once
// nobody works under them.
func (r *Repository) Retire(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		unlock, err := r.Lock(ctx, name)
		if err != nil {
			return err
		}
		errs = append(errs, r.Pool.Retire(git.Name(name)), removeAll(r.StateDir(name)))
		unlock()
	}
	return errors.Join(errs...)
}

// RetireTasks gives back what is kept of tasks that open does not name, such as
// after a time in which nobody listened.
func (r *Repository) RetireTasks(open map[forge.TaskID]bool) error {
	keep := func(name string) bool { return !isTask(name) || open[forge.TaskID(name)] }
	return errors.Join(r.Pool.Sweep(keep), r.Forget(keep))
}

// StateName is the name under which a step of a whole intent keeps its state: each is a
// conversation of its own. It is no task's.
func StateName(intent forge.IntentID, step forge.Step) string {
	return string(intent) + "-" + string(step)
}
