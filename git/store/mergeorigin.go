package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

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
	out, err := s.push(ctx, "--porcelain", "--no-verify", "--no-follow-tags",
		"--force-with-lease="+b.Ref()+":"+string(old), "--end-of-options", s.origin.url, string(next)+":"+b.Ref())
	switch {
	case err == nil && !bytes.Contains(out, []byte("\n=\t")): // not "up to date"
		// It merged, whatever becomes of our copy of the branch: the next fetch brings that.
		_, _ = s.Git(ctx, "update-ref", b.Ref(), string(next))
		return worktree.Merge{}, nil
	case err != nil:
		head, e := remoteHead(ctx, s, b)
		if e != nil || head == old {
			return worktree.Merge{}, errors.Join(err, e)
		}
	}
	if err := s.fetch(ctx, "+"+b.Ref()+":"+b.Ref()); err != nil {
		return worktree.Merge{}, err
	}
	head, err := s.Head(ctx, b)
	if err != nil {
		return worktree.Merge{}, err
	}
	return s.Compare(ctx, b, old, next, head)
}

// push pushes and returns the report for programs, which git prints to its standard output. In it is why a ref was
// refused, so the error has it as well.
func (s *Store) push(ctx context.Context, args ...string) ([]byte, error) {
	ctx, end := git.Begin(ctx, git.OpPush)
	var out bytes.Buffer
	c := s.transport()
	c.Stdout = &out
	_, err := git.Run(ctx, c, append([]string{string(git.OpPush)}, args...)...)
	end(err)
	if e, ok := errors.AsType[*git.Error](err); ok {
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "!") {
				e.Stderr += "\n" + line
			}
		}
	}
	return out.Bytes(), err
}

// remoteHead asks the origin for the tip of a branch. Error: ErrNoBranch.
func remoteHead(ctx context.Context, s *Store, b git.Branch) (git.OID, error) {
	out, err := s.talk(ctx, git.OpList, "-q", "--heads", "--", s.origin.url, b.Ref()) // it lists branches alone
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) { // a pattern matches the end of other names as well
		if oid, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ref == b.Ref() {
			return git.ParseOID(oid)
		}
	}
	return "", fmt.Errorf("branch %s: %w", b, git.ErrNoBranch)
}
