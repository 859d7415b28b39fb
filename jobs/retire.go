package jobs

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs/caches"
)

// Retire gives the checkouts of these tasks back to the pool and removes their state.
// It waits for work that is under way in them.
func (r *Repository) Retire(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		unlock, err := r.Lock(ctx, name)
		if err != nil {
			return err
		}
		errs = append(errs, r.Pool.Retire(git.Name(name)), caches.RemoveAll(r.StateDir(name)))
		unlock()
	}
	return errors.Join(errs...)
}

// Release gives back what tasks of an intent hold: their checkouts, their state
// directories, and their stored sessions.
func (r *Repository) Release(ctx context.Context, intent forge.IntentID, tasks ...forge.TaskID) error {
	errs := []error{r.ForgetSessions(ctx, intent, tasks...)}
	for _, id := range tasks {
		errs = append(errs, r.Retire(ctx, string(id)))
	}
	return errors.Join(errs...)
}

// RetireTasks retires all tasks that open does not have. It is called at the start,
// for tasks that ended while no worker listened.
func (r *Repository) RetireTasks(open map[forge.TaskID]bool) error {
	keep := func(name string) bool { return !isTask(name) || open[forge.TaskID(name)] }
	return errors.Join(r.Pool.Sweep(keep), r.Forget(keep))
}

// StateName returns the name of the state directory of a step of a whole intent. Each
// step has a session of its own. No task has such a name.
func StateName(intent forge.IntentID, step forge.Step) string {
	return string(intent) + "-" + string(step)
}
