package local

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/merged"
	"github.com/pfl-forge/pfl-forge/config"
)

// Merged returns the newest change of each task of a project that the base branch has.
// Where its settings say that a forge merges, it asks the remote origin of the clone.
func (r *Repository) Merged(ctx context.Context, project forge.ProjectID) ([]merged.Change, error) {
	base, err := r.Base(ctx)
	if err != nil {
		return nil, err
	}
	b := merged.Branch{Store: r.Store, Tip: base.Head, Project: project}
	if base.Config.Merge.How == config.MergePull {
		b.Remote = "origin"
	}
	return b.Changes(ctx)
}
