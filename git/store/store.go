package store

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/worktree"
)

// Store is a service's repository. Opened by OpenLocal it is the person's own
// repository, origin and object store at once; opened by OpenOrigin it is a bare clone
// that belongs to the service. Its methods are safe for concurrent use, also by several
// processes.
type Store struct {
	*worktree.Repository

	origin *origin // nil in the person's own repository
	// fetches counts those of this process, under the lock of the clone.
	fetches int
}

// LocalConfig configures OpenLocal.
type LocalConfig struct {
	// Path is a directory in the working tree, or a bare repository. It may be relative.
	Path string
	// AllowBare accepts a repository without a working tree, in which nothing follows a
	// merge; without it that is ErrBare.
	AllowBare bool
}

// OpenLocal opens the repository that contains cfg.Path and repairs a merge that was cut off.
// Errors: ErrNotRepository, ErrBare, ErrUnsupported. Inspect says more.
func OpenLocal(ctx context.Context, cfg LocalConfig) (*Store, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, err
	}
	repo, err := worktree.Discover(ctx, path)
	if err != nil {
		return nil, err
	}
	if repo.WorkTree() == "" && !cfg.AllowBare {
		return nil, fmt.Errorf("%s: %w", path, git.ErrBare)
	}
	if err := repo.Setup(ctx); err != nil {
		return nil, err
	}
	return &Store{Repository: repo}, repo.Repair(ctx)
}
