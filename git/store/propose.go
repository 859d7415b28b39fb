package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// proposedPrefix begins the refs that say where a branch was pushed last, by the name of its task. They are at the origin, so that
// every replica knows that, also one that comes after a crash. No intent can have the name _proposed, so cleaning never finds them.
const proposedPrefix = "refs/forge/_proposed/"

var (
	// ErrEdited means that the branch is at a commit that was not pushed for the task: another one has pushed, and nothing was changed.
	ErrEdited = errors.New("another one has pushed to the branch")
	// ErrNoOrigin means that there is no server to push to.
	ErrNoOrigin = errors.New("the repository has no git origin")
)

// Propose pushes a commit to a branch at the origin, for people to look at, and returns when it is there. Only what Propose has pushed
// for the same task is ever replaced: the branch, and the ref that says where it was pushed, move together or not at all.
//
//	the branch is    and was pushed last    then
//	absent           whatever               it is made
//	at the commit    whatever               it is there already
//	elsewhere        exactly there          it is moved
//	elsewhere        somewhere else         ErrEdited
//
// A branch that people deleted is made anew: they close a pull request by closing it. Errors besides ErrEdited: ErrNoOrigin, and those of a
// push, such as a hook that refuses it.
func (s *Store) Propose(ctx context.Context, task git.Name, b git.Branch, commit git.OID) error {
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
	return s.Locked(ctx, func([]*os.File) error { return s.propose(ctx, proposedPrefix+string(task), b, commit) })
}

// propose is Propose under the lock of the clone, with the ref that says where the branch was pushed last.
func (s *Store) propose(ctx context.Context, last string, b git.Branch, commit git.OID) error {
	at, pushed, err := s.proposed(ctx, last, b)
	switch {
	case err != nil:
		return err
	case at == commit && pushed == commit:
		return nil
	case at != "" && at != commit && at != pushed:
		return fmt.Errorf("%s is at %s: %w", b, at.Short(), ErrEdited)
	}
	// The leases are on what was seen just now. A person who is faster has the push refused as a whole.
	_, err = s.push(ctx, "--porcelain", "--atomic", "--no-verify", "--no-follow-tags",
		"--force-with-lease="+b.Ref()+":"+string(at), "--force-with-lease="+last+":"+string(pushed),
		"--end-of-options", s.origin.url, "+"+string(commit)+":"+b.Ref(), "+"+string(commit)+":"+last)
	if err == nil {
		return nil
	}
	// An answer that got lost on the way does not make a push that happened a failure, and a lease that did not hold is no outage.
	now, pushed, e := s.proposed(ctx, last, b)
	switch {
	case e != nil:
		return errors.Join(err, e)
	case now == commit && pushed == commit:
		return nil
	case now != at:
		return fmt.Errorf("%s is at %s: %w", b, now.Short(), ErrEdited)
	}
	return err
}

// proposed asks the origin where a branch is, and where it was pushed last; empty where there is none.
func (s *Store) proposed(ctx context.Context, last string, b git.Branch) (at, pushed git.OID, err error) {
	out, err := s.talk(ctx, git.OpList, "-q", "--refs", "--", s.origin.url, b.Ref(), last)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(out)) {
		oid, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		o, err := git.ParseOID(oid)
		if err != nil {
			return "", "", err
		}
		switch ref { // a pattern matches the end of other names as well
		case b.Ref():
			at = o
		case last:
			pushed = o
		}
	}
	return at, pushed, nil
}
