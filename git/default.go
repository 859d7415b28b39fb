package git

import (
	"context"
	"fmt"
	"strings"
)

// DefaultBranch is the branch that work goes to when nobody says otherwise: in a local store the one that is checked
// out, in a distributed one the one that the origin's HEAD is on. Errors: ErrDetached; ErrNoBranch.
func (s *Store) DefaultBranch(ctx context.Context) (Branch, error) {
	if s.origin == nil {
		return s.CurrentBranch()
	}
	out, err := run(ctx, s.transport(), "ls-remote", "-q", "--symref", "--", s.origin.url, "HEAD")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(out)) {
		target, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if branch, ok := strings.CutPrefix(target, "ref: refs/heads/"); ok && name == "HEAD" {
			return ParseBranch(branch)
		}
	}
	return "", fmt.Errorf("the HEAD of the origin is on no branch: %w", ErrNoBranch)
}
