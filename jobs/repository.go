package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/jobs/caches"
	"github.com/pfl-forge/pfl-forge/jobs/guard"
)

// Repository is one project's repository. It is safe for concurrent use.
type Repository struct {
	// Project is the id under which intents know the repository.
	Project forge.ProjectID
	// Store reads and writes commits and refs.
	Store *store.Store
	// Pool has the checkouts of tasks, at most two for each parallel worker.
	Pool *checkout.Pool
	// Guard finds the files of a change that only a person may approve,
	// whatever the patterns of policy.protected_paths say.
	Guard *guard.Guard

	// host is shared by all repositories of the process.
	host *Host
	// dir keeps the clone, the caches and the sessions of this repository.
	dir     string
	caches  *caches.Caches
	configs configs
	locks   locks

	mu sync.Mutex
	// base is the base branch; empty until it is resolved.
	base git.Branch
}

// open clones or opens the repository of a source, resolves its base branch, and
// removes checkouts that belong to no task. A configuration that is wrong is logged
// and replaced by the defaults: each command is then answered with that failure,
// until a person mends the file.
func open(ctx context.Context, host *Host, src Source) (*Repository, error) {
	if _, err := forge.ParseProjectID(string(src.Project)); err != nil {
		return nil, err
	}
	r := &Repository{Project: src.Project, host: host, dir: host.projectDir(src.Project)}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if r.Store = src.Store; r.Store != nil {
		err = r.Store.Repair(ctx)
	} else if src.Path != "" {
		r.Store, err = store.OpenLocal(ctx, store.LocalConfig{Path: src.Path})
	} else {
		r.Store, err = store.OpenOrigin(ctx, store.OriginConfig{URL: src.URL, Dir: filepath.Join(r.dir, cloneName)})
	}
	if err != nil {
		return nil, err
	}
	if r.caches, err = caches.New(filepath.Join(r.dir, "cache"), host.shared()...); err != nil {
		return nil, err
	}
	r.Guard = guard.New(r.Store.Database)
	cfg, err := r.resolveBase(ctx)
	if f, ok := errors.AsType[*agent.Failure](err); ok {
		// Until somebody mends it, every command is answered with this failure.
		host.Log.WarnContext(ctx, "the configuration of a project is wrong", "project", r.Project, "error", f)
		cfg, err = config.Default(), nil
	}
	if err != nil {
		return nil, err
	}
	r.Pool, err = checkout.NewPool(ctx, checkout.PoolConfig{
		Dir: r.worktrees(cfg), Store: r.Store, Max: 2 * cfg.ParallelWorkers, Log: host.Log.With("project", r.Project),
	})
	if err != nil {
		return nil, err
	}
	// A view was of a command that is not being done any more.
	if err := r.Pool.Sweep(isTask); err != nil {
		return nil, errors.Join(err, r.Pool.Close())
	}
	return r, nil
}

// cloneName is the name of an origin's clone in the directory of its project.
const cloneName = "clone.git"

// projectDir returns the directory for the clone, the caches and the sessions of a project.
func (h *Host) projectDir(id forge.ProjectID) string {
	return filepath.Join(h.StateDir, "projects", string(id))
}

// cloned reports whether an earlier life has cloned a project: it may have left checkouts and
// results, which are looked after at the start.
func (h *Host) cloned(id forge.ProjectID) bool {
	_, err := os.Stat(filepath.Join(h.projectDir(id), cloneName))
	return err == nil
}

// isTask reports whether a checkout's name is the id of a task.
func isTask(name string) bool {
	_, err := forge.ParseTaskID(name)
	return err == nil
}

// worktrees returns the directory of the checkouts: in a person's repository the
// folder that pfl-forge.yaml names, so that the person can look into it; elsewhere a
// folder of the state directory.
func (r *Repository) worktrees(cfg *config.Project) string {
	switch {
	case r.Store.WorkTree() == "":
		return filepath.Join(r.dir, "worktrees")
	case filepath.IsAbs(cfg.WorktreeDir):
		return filepath.Join(cfg.WorktreeDir, string(r.Project))
	}
	return filepath.Join(r.Store.WorkTree(), cfg.WorktreeDir)
}

// resolveBase sets the base branch: the one that pfl-forge.yaml on the default branch
// names, or the default branch itself. It returns the configuration at its tip.
func (r *Repository) resolveBase(ctx context.Context) (*config.Project, error) {
	base, err := r.Store.DefaultBranch(ctx)
	if err != nil {
		return nil, err
	}
	cfg, err := r.inspect(ctx, base)
	if err != nil {
		return nil, err
	}
	if cfg.BaseBranch != "" && cfg.BaseBranch != string(base) {
		if base, err = git.ParseBranch(cfg.BaseBranch); err != nil {
			return nil, err
		}
		if cfg, err = r.inspect(ctx, base); err != nil {
			return nil, fmt.Errorf("base_branch of %s: %w", config.FileName, err)
		}
	}
	r.base = base
	return cfg, nil
}

// inspect returns the configuration at the tip of a branch, and an error if the
// branch cannot be worked on.
func (r *Repository) inspect(ctx context.Context, b git.Branch) (*config.Project, error) {
	tip, err := r.Store.Inspect(ctx, b)
	if err != nil {
		return nil, err
	}
	return r.Config(ctx, tip)
}

// Base returns the branch where changes are merged. It does not change after the
// first call, even when a person switches branches.
func (r *Repository) Base(ctx context.Context) (git.Branch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.base == "" {
		if _, err := r.resolveBase(ctx); err != nil {
			return "", err
		}
	}
	return r.base, nil
}

// known returns the base branch if it is known by now.
func (r *Repository) known() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.base)
}

// Tip fetches the base branch, and returns the commit that it is at now.
func (r *Repository) Tip(ctx context.Context) (git.OID, error) { return r.tip(ctx, store.Need{}) }

// tip is Tip, and fetches what else is needed.
func (r *Repository) tip(ctx context.Context, need store.Need) (git.OID, error) {
	if r.known() == "" {
		if err := r.Store.Fetch(ctx); err != nil {
			return "", err
		}
	}
	base, err := r.Base(ctx)
	if err != nil {
		return "", err
	}
	need.Branch = base
	if err := r.Store.FetchFor(ctx, need); err != nil {
		return "", err
	}
	return r.Store.Head(ctx, base)
}

// Bring fetches those of an intent's commits that are missing in the store, from
// wherever another replica pushed them. The error is git.ErrNotFound if the origin
// does not have one of them either.
func (r *Repository) Bring(ctx context.Context, intent forge.IntentID, commits ...git.OID) error {
	var fetched bool
	for _, c := range commits {
		if r.Store.Has(ctx, c) {
			continue
		}
		if !fetched {
			fetched = true
			if err := r.Store.FetchIntent(ctx, git.Name(intent)); err != nil {
				return err
			}
		}
		if !r.Store.Has(ctx, c) {
			return fmt.Errorf("commit %s of intent %s: %w", c.Short(), intent, git.ErrNotFound)
		}
	}
	return nil
}

// StateDir returns the directory in which a task, or a step of an intent, keeps files
// between calls, such as session files. It may not exist yet. It is private to this
// process.
func (r *Repository) StateDir(name string) string { return filepath.Join(r.dir, "state", name) }

// Forget removes the state directories whose names keep does not accept.
func (r *Repository) Forget(keep func(name string) bool) error {
	entries, err := os.ReadDir(r.StateDir(""))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !keep(e.Name()) {
			errs = append(errs, caches.RemoveAll(r.StateDir(e.Name())))
		}
	}
	return errors.Join(errs...)
}
