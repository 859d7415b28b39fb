package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// DefaultBranch returns the base branch of a project that does not configure one: in a
// local store the branch that is checked out, in a distributed one the branch of the
// origin's HEAD. Errors: ErrDetached; ErrNoBranch.
func (s *Store) DefaultBranch(ctx context.Context) (git.Branch, error) {
	if s.origin == nil {
		return s.CurrentBranch()
	}
	out, err := s.origin.remote(ctx, git.OpList, "-q", "--symref", "--", s.origin.url, "HEAD")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		target, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if branch, ok := strings.CutPrefix(target, "ref: refs/heads/"); ok && name == "HEAD" {
			return git.ParseBranch(branch)
		}
	}
	return "", fmt.Errorf("the HEAD of the origin is on no branch: %w", git.ErrNoBranch)
}
