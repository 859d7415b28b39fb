package implementer

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// begin prepares the checkout of an attempt: a fresh one at the tip of the base
// branch, the one that the attempt before left, or, when an earlier delivery of this
// very attempt did not report, here or in another replica, the state that it left.
// Nothing of that state is lost.
func begin(ctx context.Context, j *jobs.Job) (*work, error) {
	old, elsewhere, err := lastCheckpoint(ctx, j)
	if err != nil {
		return nil, err
	}
	again := old != nil && old.Number == j.Command.Attempt.Number
	if again && old.Ended && old.GivenBack && !elsewhere {
		return &work{Job: j, state: old}, nil // there is nothing left to do but to report it
	}
	if again || old != nil && j.Command.Implement().Continue {
		w, err := resume(ctx, j, old, elsewhere)
		if w != nil || err != nil {
			return w, err
		}
	}
	w, err := open(ctx, j, again || elsewhere)
	if err != nil {
		return nil, err
	}
	if again {
		w.state.Called, w.moved = old.Called, elsewhere
	}
	if w.fresh && old != nil && !old.reported() {
		w.state.Interrupted = old.Interrupted
	}
	return w, w.state.write()
}

// lastCheckpoint returns the checkpoint of the task's last attempt, by whichever
// replica had it, and whether that was another one. The work that this replica may
// have had before is kept in a commit.
func lastCheckpoint(ctx context.Context, j *jobs.Job) (n *checkpoint, elsewhere bool, err error) {
	mine, err := loadCheckpoint(checkpointPath(j.StateDir(string(j.Task()))))
	if err != nil {
		return nil, false, err
	}
	theirs, err := j.FetchSession(ctx, j.StateDir(string(j.Task())))
	if err != nil || theirs == nil {
		return mine, false, err
	}
	if err := rescue(ctx, j.Repository, j.Task(), mine); err != nil {
		return nil, false, err
	}
	return parseCheckpoint(checkpointPath(j.StateDir(string(j.Task()))), theirs), true, nil
}

// resume returns the work of an earlier delivery, or of an attempt that this one
// continues, in its tree. Where that is not possible, it keeps what is there and
// returns nil.
func resume(ctx context.Context, j *jobs.Job, old *checkpoint, elsewhere bool) (*work, error) {
	w := &work{Job: j, state: old}
	if old.Number != j.Command.Attempt.Number {
		w.state = old.next(j)
	}
	if elsewhere {
		return w.rebuild(ctx)
	}
	recipe, err := j.IsRecipe()
	if err != nil {
		return nil, err
	}
	w.checkout, err = j.Pool.Recover(j.Task())
	switch {
	case errors.Is(err, git.ErrMissing) && old.GivenBack && !recipe:
		return w.rebuild(ctx)
	case errors.Is(err, git.ErrMissing):
		return nil, nil //nolint:nilnil // there is nothing to go on with
	case err != nil || w.state.Ended:
		return w, err
	}
	w.state.GivenBack = false
	w.state.dropInterrupted() // before it is saved anew, in another commit
	kept, err := w.save(ctx)
	if err != nil {
		return nil, err
	}
	err = w.checkout.Unlock()
	if recipe || errors.Is(err, git.ErrMissing) { // a recipe is run from its beginning
		if kept != "" {
			old.Interrupted = kept
		}
		return nil, nil //nolint:nilnil // as above
	}
	w.fresh = !w.state.SetUp
	w.touched = kept != ""
	return w, errors.Join(err, w.state.write())
}

// rebuild makes the tree that another replica had, or whose checkout was given back,
// from the commits in which it was saved. It returns nil if they cannot be found.
func (w *work) rebuild(ctx context.Context) (*work, error) {
	n := w.state
	head := n.Head
	if head == "" {
		head = n.From
	}
	commits := []git.OID{n.Base, head}
	if n.Work != "" {
		commits = append(commits, n.Work)
	}
	err := w.Bring(ctx, w.Command.To.Intent, commits...)
	if errors.Is(err, git.ErrNotFound) {
		return nil, nil //nolint:nilnil // it was not saved
	}
	if err != nil {
		return nil, err
	}
	if w.checkout, err = w.Pool.Prepare(ctx, w.Task(), head); err != nil {
		return nil, err
	}
	if n.Work != "" {
		if err := w.checkout.Restore(ctx, n.Work); err != nil {
			return nil, err
		}
	}
	n.SetUp, n.GivenBack = false, false
	w.fresh, w.moved = true, true
	w.touched = n.Work != "" || head != n.From
	n.dropInterrupted()
	return w, n.write()
}

// open makes the checkout that the command asks for: a fresh one on the tip of the base branch for
// a first attempt or one that begins anew, otherwise one at the task's head, which is fetched from
// the origin if another replica made it. Again says that what is in it now must not be built upon.
func open(ctx context.Context, j *jobs.Job, again bool) (*work, error) {
	t := &j.Command.Task
	if j.Command.Implement().Fresh || t.Head == "" {
		c, err := j.Pool.Prepare(ctx, j.Task(), j.Tip)
		return &work{Job: j, checkout: c, fresh: true, state: newCheckpoint(j, j.Tip, j.Tip)}, err
	}
	base, err := jobs.OID("base", t.Base)
	if err != nil {
		return nil, err
	}
	head, err := jobs.OID("head", t.Head)
	if err != nil {
		return nil, err
	}
	w := &work{Job: j, state: newCheckpoint(j, base, head)}
	if !again {
		w.checkout, err = j.Pool.Reopen(j.Task(), head)
		if !errors.Is(err, git.ErrMissing) {
			w.state.SetUp = true
			return w, err
		}
	}
	if err := j.Bring(ctx, j.Command.To.Intent, base, head); err != nil {
		return nil, err
	}
	w.fresh = true
	w.checkout, err = j.Pool.Prepare(ctx, j.Task(), head)
	return w, err
}
