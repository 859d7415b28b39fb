package implementer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/service"
)

// saveTimeout bounds how long an attempt that was stopped may take to save its state.
const saveTimeout = time.Minute

// saveCheckpoint saves commits and files while the agent works, and returns the
// checkpoint with which another replica can continue from there. A tree that cannot
// be saved just now is left for the next time.
func (w *work) saveCheckpoint(ctx context.Context) ([]byte, error) {
	if err := service.Held(ctx); err != nil {
		return nil, err
	}
	now, err := w.checkout.Checkpoint(ctx, w.GitAttempt(), w.saved)
	if _, fault := errors.AsType[*git.WorkError](err); err != nil && !fault {
		return nil, fmt.Errorf("save the work: %w", err)
	}
	w.saved = now
	n := *w.state
	n.Head, n.Work = now.Head, now.Work
	return json.Marshal(&n)
}

// store uploads the session with the checkpoint, for the replica that continues the
// task.
func (w *work) store(ctx context.Context) {
	if data, err := json.Marshal(w.state); err == nil {
		w.SaveSession(ctx, w.StateDir(string(w.Task())), data)
	}
}

// handOn saves the state of an attempt that was stopped, for its next delivery.
func (i *Implementer) handOn(ctx context.Context, w *work) error {
	_, err := w.save(ctx)
	w.store(ctx)
	if err == nil {
		i.giveBack(ctx, w)
	}
	return err
}

// giveBack lets the pool use the checkout for another task. Until it does, the next
// attempt of this task finds it as it is. A checkout that could not be saved is not
// given back.
func (i *Implementer) giveBack(ctx context.Context, w *work) {
	if w.damaged {
		return
	}
	w.state.GivenBack = true
	err := w.state.write()
	if err == nil {
		err = w.checkout.Park()
	}
	if err != nil { // it goes when the task is over
		i.log.WarnContext(ctx, "cannot give a task's checkout back", "error", err)
	}
}

// giveUp keeps the work of a failed attempt, and records it for the next one.
func (i *Implementer) giveUp(ctx context.Context, w *work) error {
	kept, err := w.save(ctx)
	if err == nil && kept != "" {
		w.state.Interrupted = kept
		err = w.state.write()
	}
	w.store(ctx)
	if err == nil {
		i.giveBack(ctx, w)
	}
	return err
}

// save keeps the attempt's tree in commits, and returns the commit that has all of
// it; empty if there is nothing. A tree that git refuses is marked as damaged:
// nothing is built upon it.
func (w *work) save(ctx context.Context) (git.OID, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
	defer cancel()
	got, err := w.checkout.Collect(ctx, w.GitAttempt())
	if _, fault := errors.AsType[*git.WorkError](err); fault {
		w.damaged = true
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("save what the agent left: %w", err)
	}
	w.state.Head, w.state.Work = got.Head, got.Leftover
	switch {
	case got.Leftover != "":
		return got.Leftover, nil // it stands on the commits
	case got.Head != w.state.From:
		return got.Head, nil
	}
	return "", nil
}

// rescue keeps the content of a checkout in which an attempt was cut off here, before
// it is used for something else: another replica may have gone on with the task.
func rescue(ctx context.Context, r *jobs.Repository, task git.Name, n *checkpoint) error {
	if n == nil || n.Ended || n.GivenBack || n.Intent == "" {
		return nil
	}
	c, err := r.Pool.Recover(task)
	if errors.Is(err, git.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = c.Collect(ctx, store.Attempt{Intent: git.Name(n.Intent), Task: task, Number: n.Number})
	if _, fault := errors.AsType[*git.WorkError](err); fault {
		return nil
	}
	return err
}

// rescueAll rescues every attempt in which the previous process was cut off.
func rescueAll(ctx context.Context, r *jobs.Repository) error {
	entries, err := os.ReadDir(r.StateDir(""))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		id, err := forge.ParseTaskID(e.Name())
		if err != nil {
			continue
		}
		n, err := loadCheckpoint(checkpointPath(r.StateDir(e.Name())))
		errs = append(errs, err, rescue(ctx, r, git.Name(id), n))
	}
	return errors.Join(errs...)
}
