package target

import (
	"context"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/forgedir"
)

// FileProblems returns the problems of a person's files in the repository: as a
// look finds them now, or, while a run is active, as that run has found them.
func (t *Target) FileProblems(ctx context.Context, look *local.Look) ([]forgedir.Problem, error) {
	if !t.Owner {
		return t.Repo.Problems()
	}
	return look.Problems(ctx, t.Stored)
}
