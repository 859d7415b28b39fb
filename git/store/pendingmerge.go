package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// PendingMerge records one try to move a branch from Parent to Commit for a
// task. It is kept before the branch moves, so that after a crash the commit on
// the branch can be attributed to its task, whichever replica looks.
type PendingMerge struct {
	Intent git.Name
	Task   git.Name
	// Number counts the task's tries to merge from 1.
	Number int
	// Parent is the tip of the branch that the change was verified on.
	Parent git.OID
	// Commit is the verified and reviewed commit on top of Parent.
	Commit git.OID
	// Proofs show how Commit came to be; empty if there are none. They are kept with the
	// merge, and stay when that is forgotten.
	Proofs string
}

// ref returns refs/forge/<intent>/<task>/merge/<number>/<parent>, which points
// to the commit.
func (l PendingMerge) ref() string {
	return fmt.Sprintf("%s%d/%s", mergePrefix(l.Intent, l.Task), l.Number, l.Parent)
}

// mergePrefix returns the prefix of the refs of a task's merges, which ends with a slash.
func mergePrefix(intent, task git.Name) string {
	return intentPrefix(intent) + string(task) + "/merge/"
}

// parsePendingMerge is the inverse of ref. It accepts nothing that ref would
// not return.
func parsePendingMerge(ref, commit string) (PendingMerge, error) {
	bad := fmt.Errorf("%s: is not a merge", git.Clip(ref))
	f := strings.Split(ref, "/")
	if len(f) != 7 || f[4] != "merge" {
		return PendingMerge{}, bad
	}
	number, err := strconv.Atoi(f[5])
	if err != nil {
		return PendingMerge{}, bad
	}
	l := PendingMerge{Intent: git.Name(f[2]), Task: git.Name(f[3]), Number: number, Parent: git.OID(f[6]), Commit: git.OID(commit)}
	if l.validate() != nil || l.ref() != ref {
		return PendingMerge{}, bad
	}
	return l, nil
}

// validate refuses names and numbers that do not make a ref of this shape.
func (l PendingMerge) validate() error {
	if err := (Attempt{Intent: l.Intent, Task: l.Task, Number: l.Number}).Validate(); err != nil {
		return err
	}
	if _, err := git.ParseOID(string(l.Parent)); err != nil {
		return err
	}
	_, err := git.ParseOID(string(l.Commit))
	return err
}

// KeepPendingMerge stores a merge as a ref, with the proofs of its commit beside it, in
// a distributed store at the origin too, and returns when they are durable. So a branch
// that moves afterwards never has a commit without its proofs.
func (s *Store) KeepPendingMerge(ctx context.Context, l PendingMerge) error {
	if err := l.validate(); err != nil {
		return err
	}
	kept := []Kept{{Ref: l.ref(), OID: l.Commit}}
	if l.Proofs != "" {
		proofs, err := s.keptProofs(l.Commit, l.Proofs)
		if err != nil {
			return err
		}
		kept = append(kept, proofs)
	}
	return s.KeepAll(ctx, kept...)
}

// PendingMerges returns the merges that are kept of an intent, or of all if it is
// empty, in a distributed store those at the origin. Their commits need not be in the
// store. The origin lists all its refs for this; MergesOf is for what happens often.
func (s *Store) PendingMerges(ctx context.Context, intent git.Name) ([]PendingMerge, error) {
	under := "refs/forge/"
	if intent != "" {
		if _, err := git.ParseName(string(intent)); err != nil {
			return nil, err
		}
		under = intentPrefix(intent)
	}
	if s.origin == nil {
		return mergesBelow(ctx, s, under)
	}
	var list []PendingMerge
	out, err := s.origin.remote(ctx, git.OpList, "-q", "--refs", "--", s.origin.url, under+"*/merge/*")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		commit, ref, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if l, err := parsePendingMerge(ref, commit); err == nil {
			list = append(list, l)
		}
	}
	return list, nil
}

// MergesOf returns the merges that are kept of a task, in a distributed store
// those that the origin had when FetchFor was called for the task last, and
// those that were kept here since. Nothing is asked of the origin.
func (s *Store) MergesOf(ctx context.Context, intent, task git.Name) ([]PendingMerge, error) {
	if err := (Attempt{Intent: intent, Task: task, Number: 1}).Validate(); err != nil {
		return nil, err
	}
	return mergesBelow(ctx, s, mergePrefix(intent, task))
}

// mergesBelow returns the merges in this repository whose refs have a prefix,
// which ends with a slash.
func mergesBelow(ctx context.Context, s *Store, prefix string) (list []PendingMerge, err error) {
	refs, err := s.refsBelow(ctx, prefix)
	for _, k := range refs {
		if l, err := parsePendingMerge(k.Ref, string(k.OID)); err == nil {
			list = append(list, l)
		}
	}
	return list, err
}
