package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Merge reports an Merge that succeeded.
type Merge struct {
	Head          OID    // of the branch afterwards
	AlreadyMerged bool   // the branch contained the commit before
	WorkTree      string // the person's working tree whose files followed, or empty
}

// Merge moves a branch from exactly old to exactly next, fast-forward only. Doing it again is a success with
// AlreadyMerged.
//
// In a local store, when a person has the branch checked out, their files and index follow, and work that they
// have not committed is never touched: if it is in the way, nothing changes (*OverlapError). In a distributed store the
// origin decides, by a push with a lease.
//
// Errors: ErrMoved; *OverlapError; ErrInProgress (a rebase, merge, ... of the person on this branch); ErrBusy;
// ErrNoBranch; *WorkError (Rewritten when next does not descend from old).
func (s *Store) Merge(ctx context.Context, b Branch, old, next OID) (Merge, error) {
	if _, err := ParseBranch(string(b)); err != nil {
		return Merge{}, err
	}
	var res Merge
	err := s.locked(ctx, func(hold []*os.File) (err error) {
		if s.origin != nil {
			res, err = s.mergeAtOrigin(ctx, b, old, next)
			return err
		}
		if err := s.repair(ctx, hold); err != nil {
			return err
		}
		res, err = s.mergeLocally(ctx, move{Branch: b, Old: old, New: next}, hold)
		return err
	})
	return res, err
}

// mergeLocally repeats tryLocal while another git holds a lock or switches branches, for a third of the lock wait.
func (s *Store) mergeLocally(ctx context.Context, m move, hold []*os.File) (Merge, error) {
	deadline := time.Now().Add(s.busyWait())
	var busy error
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		res, err := s.tryLocal(ctx, m, hold)
		if err != nil && ctx.Err() != nil {
			return res, errors.Join(busy, err)
		}
		if !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return res, err
		}
		busy = err
		if err := sleep(ctx, wait); err != nil {
			return res, errors.Join(busy, err)
		}
	}
}

func (s *Store) tryLocal(ctx context.Context, m move, hold []*os.File) (Merge, error) {
	if m.Old == m.New {
		return s.alreadyThere(ctx, m)
	}
	var on []workTreeInfo
	for _, w := range s.workTrees() {
		if w.rebasing(m.Branch) || w.on(m.Branch) && w.operation() != "" {
			return Merge{}, fmt.Errorf("%s: %s: %w", w.path, w.operation(), ErrInProgress)
		}
		if w.on(m.Branch) {
			on = append(on, w)
		}
	}
	m.GitDir = s.common
	if len(on) > 1 {
		return several(m, on)
	}
	if len(on) == 1 {
		m.WorkTree, m.GitDir = on[0].path, on[0].gitDir
	}
	err := s.move(ctx, m, hold)
	if errors.Is(err, ErrMoved) {
		return s.alreadyThere(ctx, m)
	}
	if err != nil {
		return Merge{}, err
	}
	return Merge{Head: m.New, WorkTree: m.WorkTree}, nil
}

// move announces a move, does it, and removes the announcement. A move that fails half-way is undone at once.
func (s *Store) move(ctx context.Context, m move, hold []*os.File) error {
	if err := s.announce(m); err != nil {
		return err
	}
	var err error
	if m.WorkTree == "" {
		err = s.moveRef(ctx, m, hold, func() error { return nil })
	} else {
		err = s.moveWorkTree(ctx, m, hold)
	}
	if err != nil {
		return errors.Join(err, s.repair(context.WithoutCancel(ctx), hold))
	}
	return os.Remove(s.moveFile())
}

func several(m move, on []workTreeInfo) (Merge, error) {
	return Merge{}, fmt.Errorf("branch %s is checked out in %s and %s: switch one of them: %w",
		m.Branch, on[0].path, on[1].path, ErrInProgress)
}

// alreadyThere decides what it means that the branch is not at the expected commit: AlreadyMerged, or ErrMoved.
func (s *Store) alreadyThere(ctx context.Context, m move) (Merge, error) {
	head, err := s.Head(ctx, m.Branch)
	if err != nil {
		return Merge{}, err
	}
	return s.compare(ctx, m, head)
}

func (s *Store) compare(ctx context.Context, m move, head OID) (Merge, error) {
	contains, err := s.IsAncestor(ctx, m.New, head)
	if err != nil {
		return Merge{}, err
	}
	if contains {
		return Merge{Head: head, AlreadyMerged: true}, nil
	}
	return Merge{}, fmt.Errorf("branch %s is at %s, not at %s: %w", m.Branch, head.Short(), m.Old.Short(), ErrMoved)
}

// mergeAtOrigin pushes with a lease. Whatever the push said, what the origin has then is the answer.
func (s *Store) mergeAtOrigin(ctx context.Context, b Branch, old, next OID) (Merge, error) {
	m := move{Branch: b, Old: old, New: next}
	if err := s.descends(ctx, old, next); err != nil {
		return Merge{}, err
	}
	out, err := run(ctx, s.transport(), "push", "--porcelain", "--no-verify", "--no-follow-tags",
		"--force-with-lease="+b.ref()+":"+string(old), "--end-of-options", s.origin.url, string(next)+":"+b.ref())
	switch {
	case err == nil && !bytes.Contains(out, []byte("\n=\t")): // not "up to date"
		// It merged, whatever becomes of our copy of the branch: the next fetch brings that.
		_, _ = s.refs(ctx, "update-ref", b.ref(), string(next))
		return Merge{Head: next}, nil
	case err != nil:
		head, e := s.remoteHead(ctx, b)
		if e != nil || head == old {
			return Merge{}, errors.Join(err, e)
		}
	}
	if err := s.fetch(ctx, "+"+b.ref()+":"+b.ref()); err != nil {
		return Merge{}, err
	}
	head, err := s.Head(ctx, b)
	if err != nil {
		return Merge{}, err
	}
	return s.compare(ctx, m, head)
}

func (s *Store) remoteHead(ctx context.Context, b Branch) (OID, error) {
	out, err := run(ctx, s.transport(), "ls-remote", "-q", "--refs", "--", s.origin.url, b.ref())
	if err != nil {
		return "", err
	}
	oid, _, _ := strings.Cut(string(out), "\t")
	if oid == "" {
		return "", fmt.Errorf("branch %s: %w", b, ErrNoBranch)
	}
	return ParseOID(oid)
}
