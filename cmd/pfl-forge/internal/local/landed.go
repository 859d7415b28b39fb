package local

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local/landed"
	"github.com/pfl-forge/pfl-forge/config"
)

// Landed returns the newest change of each task of a project that the base branch has. Where its settings say that a forge merges, it asks
// the remote origin of the clone.
func (r *Repository) Landed(ctx context.Context, project forge.ProjectID) ([]landed.Change, error) {
	base, err := r.Base(ctx)
	if err != nil {
		return nil, err
	}
	b := landed.Branch{Store: r.Store, Tip: base.Head, Project: project}
	if base.Config.Merge.How == config.MergePull {
		b.Remote = "origin"
	}
	return b.Changes(ctx)
}
