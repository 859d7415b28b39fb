package store

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/worktree"
)

// Merge moves a branch from exactly old to exactly next, fast-forward only. Doing it
// again is a success with AlreadyMerged.
//
// In a local store, when a person has the branch checked out, their files and index
// follow, and work that they have not committed is never touched: if it is in the way,
// nothing changes (*UncommittedError). In a distributed store the origin decides, by a
// push with a lease.
//
// Errors: ErrMoved; *UncommittedError; ErrInProgress (a rebase, merge, ... of the
// person on this branch); ErrBusy; ErrNoBranch; *WorkError (Rewritten when next does
// not descend from old).
func (s *Store) Merge(ctx context.Context, b git.Branch, old, next git.OID) (res worktree.Merge, err error) {
	ctx, end := git.Begin(ctx, git.OpMerge)
	defer func() { end(err) }()
	if s.origin == nil {
		return s.Repository.Merge(ctx, b, old, next)
	}
	if _, err := git.ParseBranch(string(b)); err != nil {
		return worktree.Merge{}, err
	}
	err = s.Locked(ctx, func([]*os.File) error {
		res, err = s.mergeAtOrigin(ctx, b, old, next)
		return err
	})
	return res, err
}

// mergeAtOrigin pushes with a lease: the origin moves the branch only if it is
// at old. Whatever the push said, the branch that the origin has then is the
// answer: an answer that got lost on the way does not make a merge that
// happened a failure.
func (s *Store) mergeAtOrigin(ctx context.Context, b git.Branch, old, next git.OID) (worktree.Merge, error) {
	if err := s.Descends(ctx, old, next); err != nil {
		return worktree.Merge{}, err
	}
	out, err := s.origin.push(ctx, "--porcelain", "--no-verify", "--no-follow-tags",
		"--force-with-lease="+b.Ref()+":"+string(old), "--end-of-options", s.origin.url, string(next)+":"+b.Ref())
	switch {
	case err == nil && !bytes.Contains(out, []byte("\n=\t")): // not "up to date"
		// It merged, whatever becomes of our copy of the branch: the next fetch brings that.
		_, _ = s.Git(ctx, "update-ref", b.Ref(), string(next))
		return worktree.Merge{}, nil
	case err != nil:
		head, e := s.origin.head(ctx, b)
		if e != nil || head == old {
			return worktree.Merge{}, errors.Join(err, e)
		}
	}
	if err := s.origin.fetch(ctx, "+"+b.Ref()+":"+b.Ref()); err != nil {
		return worktree.Merge{}, err
	}
	head, err := s.Head(ctx, b)
	if err != nil {
		return worktree.Merge{}, err
	}
	return s.Compare(ctx, b, old, next, head)
}
