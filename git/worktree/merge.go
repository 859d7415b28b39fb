package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
)

// Merge reports a merge that succeeded.
type Merge struct {
	// AlreadyMerged says that the branch contained the commit before: an earlier call
	// merged it, or a person did.
	AlreadyMerged bool
	// WorkTree is the person's working tree whose files followed; empty if the branch was
	// checked out in none.
	WorkTree string
}

// Merge moves a branch from exactly old to exactly next, fast-forward only. Doing it
// again is a success with AlreadyMerged. When a person has the branch checked out,
// their files and index follow. Work that they have not committed is never touched: if
// it is in the way, nothing changes.
//
// Errors: ErrMoved; *UncommittedError; ErrInProgress (a rebase, merge, ... of the
// person on this branch); ErrBusy; ErrNoBranch; *WorkError (Rewritten when next does
// not descend from old).
func (repo *Repository) Merge(ctx context.Context, b git.Branch, old, next git.OID) (Merge, error) {
	if _, err := git.ParseBranch(string(b)); err != nil {
		return Merge{}, err
	}
	var res Merge
	err := repo.Locked(ctx, func(hold []*os.File) (err error) {
		if err := repo.repair(ctx, hold); err != nil {
			return err
		}
		res, err = repo.mergeLocally(ctx, move{Branch: b, Old: old, New: next}, hold)
		return err
	})
	return res, err
}

// mergeLocally repeats tryLocal while another git holds a lock or switches branches,
// for a third of the lock wait.
func (repo *Repository) mergeLocally(ctx context.Context, m move, hold []*os.File) (Merge, error) {
	deadline := time.Now().Add(lockWait / 3)
	var busy error
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		res, err := repo.tryLocal(ctx, m, hold)
		if err != nil && ctx.Err() != nil {
			return res, errors.Join(busy, err)
		}
		if !errors.Is(err, git.ErrBusy) || time.Now().After(deadline) {
			return res, err
		}
		busy = err
		if err := git.Pause(ctx, wait); err != nil {
			return res, errors.Join(busy, err)
		}
	}
}

// tryLocal tries one move. Error: ErrBusy, after which another try may succeed;
// others are those of Merge.
func (repo *Repository) tryLocal(ctx context.Context, m move, hold []*os.File) (Merge, error) {
	if m.Old == m.New {
		return repo.alreadyThere(ctx, m)
	}
	var on []workTreeInfo
	for _, w := range repo.workTrees() {
		if w.rebasing(m.Branch) || w.on(m.Branch) && w.operation() != "" {
			return Merge{}, fmt.Errorf("%s: %s: %w", w.path, w.operation(), git.ErrInProgress)
		}
		if w.on(m.Branch) {
			on = append(on, w)
		}
	}
	m.GitDir = repo.common
	if len(on) > 1 {
		return several(m, on)
	}
	if len(on) == 1 {
		m.WorkTree, m.GitDir = on[0].path, on[0].gitDir
	}
	err := repo.move(ctx, m, hold)
	if errors.Is(err, git.ErrMoved) {
		return repo.alreadyThere(ctx, m)
	}
	if err != nil {
		return Merge{}, err
	}
	return Merge{WorkTree: m.WorkTree}, nil
}

// move announces a move, does it, and removes the announcement. A move that fails
// half-way is undone at once.
func (repo *Repository) move(ctx context.Context, m move, hold []*os.File) error {
	if err := repo.announce(m); err != nil {
		return err
	}
	var err error
	if m.WorkTree == "" {
		err = repo.moveRef(ctx, m, hold, func() error { return nil })
	} else {
		err = repo.moveWorkTree(ctx, m, hold)
	}
	if err != nil {
		return errors.Join(err, repo.repair(context.WithoutCancel(ctx), hold))
	}
	return os.Remove(repo.moveFile())
}

// several refuses a branch that is checked out more than once, as git worktree
// add --force makes it: only one of the trees could follow.
func several(m move, on []workTreeInfo) (Merge, error) {
	return Merge{}, fmt.Errorf("branch %s is checked out in %s and %s: switch one of them: %w",
		m.Branch, on[0].path, on[1].path, git.ErrInProgress)
}

// alreadyThere looks at a branch that is not at the expected commit:
// AlreadyMerged, or ErrMoved.
func (repo *Repository) alreadyThere(ctx context.Context, m move) (Merge, error) {
	head, err := repo.Head(ctx, m.Branch)
	if err != nil {
		return Merge{}, err
	}
	return repo.Compare(ctx, m.Branch, m.Old, m.New, head)
}

// Compare returns the outcome of the merge old..next for a branch that is at
// head: AlreadyMerged if that contains next, otherwise ErrMoved.
func (repo *Repository) Compare(ctx context.Context, b git.Branch, old, next, head git.OID) (Merge, error) {
	contains, err := repo.IsAncestor(ctx, next, head)
	if err != nil {
		return Merge{}, err
	}
	if contains {
		return Merge{AlreadyMerged: true}, nil
	}
	return Merge{}, fmt.Errorf("branch %s is at %s, not at %s: %w", b, head.Short(), old.Short(), git.ErrMoved)
}
