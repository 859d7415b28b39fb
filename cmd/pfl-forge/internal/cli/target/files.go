package target

import (
	"context"

	"github.com/pfl-forge/pfl-forge/forgedir"
)

// FileProblems returns the problems of a person's files in the repository: as they are now,
// or, while a run is active, as that run has found them.
func (t *Target) FileProblems(ctx context.Context) ([]forgedir.Problem, error) {
	if !t.Owner {
		return t.Repo.Problems()
	}
	return t.Repo.LookAtFiles(ctx, t.Bus)
}
