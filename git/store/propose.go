package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// proposedPrefix begins the refs that say where a branch was pushed last, by the name of
// its task. They are at the origin, so that every replica knows that, also one that comes
// after a crash. No intent can have the name _proposed, so cleaning never finds them.
const proposedPrefix = "refs/forge/_proposed/"

var (
	// ErrEdited means that the branch is at a commit that was not pushed for the task:
	// another one has pushed, and nothing was changed. The error is an *EditedError.
	ErrEdited = errors.New("another one has pushed to the branch")
	// ErrNoOrigin means that there is no server to push to.
	ErrNoOrigin = errors.New("the repository has no git origin")
)

// EditedError is ErrEdited with the commit that the branch is at.
type EditedError struct {
	Branch git.Branch
	At     git.OID // empty if it is gone
}

func (e *EditedError) Error() string {
	return fmt.Sprintf("%s is at %s: %s", e.Branch, e.At.Short(), ErrEdited)
}

// Is reports whether the error is told as ErrEdited.
func (*EditedError) Is(target error) bool { return target == ErrEdited }

// Propose pushes a commit to a branch at the origin, for people to look at, and returns
// when it is there. Only what Propose has pushed for the same task is ever replaced, and
// the commit over of another one, which a person had become the change; empty is none.
// The branch, and the ref that says where it was pushed, move together or not at all.
//
//	the branch is    and was pushed last    then
//	absent           whatever               it is made
//	at the commit    whatever               it is there already
//	at over          whatever               it is moved
//	elsewhere        exactly there          it is moved
//	elsewhere        somewhere else         ErrEdited
//
// A branch that people deleted is made anew: they close a pull request by closing it. Errors
// besides ErrEdited: ErrNoOrigin, and those of a push, such as a hook that refuses it.
func (s *Store) Propose(ctx context.Context, task git.Name, b git.Branch, commit, over git.OID) error {
	if s.origin == nil {
		return ErrNoOrigin
	}
	if _, err := git.ParseName(string(task)); err != nil {
		return err
	}
	if _, err := git.ParseBranch(string(b)); err != nil {
		return err
	}
	if _, err := git.ParseOID(string(commit)); err != nil {
		return err
	}
	return s.Locked(ctx, func([]*os.File) error { return s.propose(ctx, proposedPrefix+string(task), b, commit, over) })
}

// propose is Propose under the lock of the clone, with the ref that says where
// the branch was pushed last.
func (s *Store) propose(ctx context.Context, last string, b git.Branch, commit, over git.OID) error {
	at, pushed, err := s.origin.proposed(ctx, last, b)
	switch {
	case err != nil:
		return err
	case at == commit && pushed == commit:
		return nil
	case at != "" && at != commit && at != pushed && at != over:
		return &EditedError{b, at}
	}
	// The leases are on what was seen just now. A person who is faster has the
	// push refused as a whole.
	_, err = s.origin.push(ctx, "--porcelain", "--atomic", "--no-verify", "--no-follow-tags",
		"--force-with-lease="+b.Ref()+":"+string(at), "--force-with-lease="+last+":"+string(pushed),
		"--end-of-options", s.origin.url, "+"+string(commit)+":"+b.Ref(), "+"+string(commit)+":"+last)
	if err == nil {
		return nil
	}
	// An answer that got lost on the way does not make a push that happened a
	// failure, and a lease that did not hold is no outage.
	now, pushed, e := s.origin.proposed(ctx, last, b)
	switch {
	case e != nil:
		return errors.Join(err, e)
	case now == commit && pushed == commit:
		return nil
	case now != at:
		return &EditedError{b, now}
	}
	return err
}

// proposed asks the origin where a branch is, and where it was pushed last;
// empty where there is none.
func (o *origin) proposed(ctx context.Context, last string, b git.Branch) (at, pushed git.OID, err error) {
	out, err := o.remote(ctx, git.OpList, "-q", "--refs", "--", o.url, b.Ref(), last)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(out)) {
		oid, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		commit, err := git.ParseOID(oid)
		if err != nil {
			return "", "", err
		}
		switch ref { // a pattern matches the end of other names as well
		case b.Ref():
			at = commit
		case last:
			pushed = commit
		}
	}
	return at, pushed, nil
}

// FetchHead brings the head of a branch at the origin, as it is now, and returns it. Whoever
// asks has to compare it with the commit that was seen there: whoever may push can have moved
// the branch between the look and the fetch. The commit stays reachable as long as the attempt's
// refs do, and is kept only if the caller does so. Errors: ErrNoOrigin; git.ErrNoBranch.
func FetchHead(ctx context.Context, s *Store, a Attempt, b git.Branch) (head git.OID, err error) {
	if s.origin == nil {
		return "", ErrNoOrigin
	}
	if err := a.Validate(); err != nil {
		return "", err
	}
	if _, err := git.ParseBranch(string(b)); err != nil {
		return "", err
	}
	ref := a.Prefix() + "fetched" // no commit is kept by that name
	err = s.Locked(ctx, func([]*os.File) error {
		if err := s.origin.fetch(ctx, "+"+b.Ref()+":"+ref); err != nil {
			if strings.Contains(git.Stderr(err), "couldn't find remote ref "+b.Ref()) {
				err = fmt.Errorf("branch %s: %w", b, git.ErrNoBranch)
			}
			return err
		}
		out, err := git.Run(ctx, s.RefCommand(), "rev-parse", "--verify", "-q", "--end-of-options", ref+"^{commit}")
		if err == nil {
			head, err = git.ParseOID(strings.TrimSpace(string(out)))
		}
		return err
	})
	return head, err
}
