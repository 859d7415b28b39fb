package implementer

import (
	"context"
	"errors"

	"github.com/pfl-forge/pfl-forge/agent/claude"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/repository"
)

// begin prepares the checkout of an attempt: a fresh one at the base branch's tip,
// the one that the attempt before left, or, when an earlier delivery of this very
// attempt did not report, the state that it left. Of that nothing is lost: if its
// agent had ended, the attempt goes on from there, otherwise its work is kept and
// the agent runs again.
func begin(ctx context.Context, j *repository.Job) (*work, error) {
	old, err := loadNote(j)
	if err != nil {
		return nil, err
	}
	again := old != nil && old.Number == j.Command.Attempt.Number
	if again {
		w, err := resume(ctx, j, old)
		if w != nil || err != nil {
			return w, err
		}
	}
	w, err := open(ctx, j, again)
	if err != nil {
		return nil, err
	}
	if again {
		w.note.Session = old.Session
	}
	if w.fresh && old != nil && !old.reported() {
		w.note.Interrupted = old.Interrupted
	}
	return w, w.note.write()
}

// resume returns the work of an earlier delivery if all that is missing is its
// report. Otherwise it keeps what is there, under the attempt, and returns nil.
func resume(ctx context.Context, j *repository.Job, old *note) (*work, error) {
	c, err := j.Pool.Recover(j.Task())
	if errors.Is(err, git.ErrMissing) {
		return nil, nil //nolint:nilnil // there is nothing to go on with
	}
	if err != nil {
		return nil, err
	}
	w := &work{Job: j, checkout: c, note: old}
	if old.Ended {
		return w, nil
	}
	kept, err := w.save(ctx)
	if kept != "" {
		old.Interrupted = kept
	}
	return nil, err
}

// open makes the checkout that the command asks for. again says that what is in it
// now is not to be built upon.
func open(ctx context.Context, j *repository.Job, again bool) (*work, error) {
	t := &j.Command.Task
	if j.Command.Fresh || t.Head == "" {
		c, err := j.Pool.Prepare(ctx, j.Task(), j.Tip)
		return &work{Job: j, checkout: c, fresh: true, note: newNote(j, j.Tip, j.Tip)}, err
	}
	base, err := repository.OID("base", t.Base)
	if err != nil {
		return nil, err
	}
	head, err := repository.OID("head", t.Head)
	if err != nil {
		return nil, err
	}
	w := &work{Job: j, note: newNote(j, base, head)}
	if !again {
		w.checkout, err = j.Pool.Reopen(j.Task(), head)
		if !errors.Is(err, git.ErrMissing) {
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

func newNote(j *repository.Job, base, from git.OID) *note {
	n := &note{
		path: notePath(j), Number: j.Command.Attempt.Number, Base: base, From: from,
		Session: j.Command.Session, Resume: j.Command.Session != "",
	}
	if recipe, err := j.IsRecipe(); n.Session == "" && !recipe && err == nil {
		n.Session = claude.NewSessionID()
	}
	return n
}
