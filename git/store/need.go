package store

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// Need lists the refs of an origin that a step reads. Nothing else is fetched:
// listing all refs costs the origin and the clone time for every task.
type Need struct {
	// Branch is the branch that the step works on.
	Branch git.Branch
	// Intent and Task are the step's; Task is empty for a step of a whole
	// intent. The newest head of the task is fetched, and its pending merges.
	Intent, Task git.Name
	// Heads fetches the heads of all tasks.
	Heads bool
	// Merging reads the pending merges after the branch, so that every merge on the branch
	// is among them, also those of other replicas. Otherwise the order is not defined.
	Merging bool
}

// validate refuses names that do not make refs.
func (n Need) validate() error {
	if _, err := git.ParseBranch(string(n.Branch)); err != nil || n.Task == "" {
		return err
	}
	if _, err := git.ParseName(string(n.Intent)); err != nil {
		return err
	}
	_, err := git.ParseName(string(n.Task))
	return err
}

// FetchFor brings the refs that a step needs up to date, and drops those that the
// origin does not have any more. In a local store it does nothing. Error: ErrNoBranch.
//
// Each ref specification is one that git asks the origin for by its prefix, so that the
// origin does not list the rest; git-ls-remote(1) makes it list all refs for any pattern.
func (s *Store) FetchFor(ctx context.Context, n Need) error {
	if s.origin == nil {
		return nil
	}
	if err := n.validate(); err != nil {
		return err
	}
	s.origin.base.Store(n.Branch)
	specs := []string{"--prune", "+" + n.Branch.Ref() + ":" + n.Branch.Ref()}
	var merges string
	if n.Heads {
		specs = append(specs, allHeads)
	}
	if n.Task != "" {
		of := mergePrefix(n.Intent, n.Task)
		merges = "+" + of + "*:" + of + "*"
		specs = append(specs, merges)
	}
	if n.Task != "" && !n.Heads {
		own := headsPrefix + string(n.Task) // by a pattern: without one a head that is not there would be an error
		specs = append(specs, "+"+own+"*:"+own+"*")
	}
	return s.Locked(ctx, func(hold []*os.File) error {
		before, _ := s.Head(ctx, n.Branch) // none, the first time
		err := s.origin.fetch(ctx, specs...)
		if strings.Contains(git.Stderr(err), "couldn't find remote ref "+n.Branch.Ref()) {
			err = fmt.Errorf("branch %s: %w", n.Branch, git.ErrNoBranch)
		}
		if err == nil && n.Merging && merges != "" {
			err = fetchMergesAfter(ctx, s, n.Branch, before, merges)
		}
		tidy(ctx, s, hold)
		return err
	})
}

// fetchMergesAfter fetches pending merges once more if the branch was found elsewhere
// than before: in one fetch they may have been read first, and a merge that was kept
// and made in the moment between would be on the branch and not among them. Where the
// branch is as it was known before the fetch began, they were read after it.
func fetchMergesAfter(ctx context.Context, s *Store, b git.Branch, before git.OID, merges string) error {
	now, err := s.Head(ctx, b)
	if err != nil || now == before {
		return err
	}
	return s.origin.fetch(ctx, "--prune", merges)
}
