package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/drafts"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/store"
	"github.com/pfl-forge/pfl-forge/internal/slug"
)

// maxConfig bounds pfl-forge.yaml, in bytes.
const maxConfig = 1 << 20

// Repository is a person's repository, as commands work in it.
type Repository struct {
	// Root is the absolute path of the main working tree, also when a command
	// was called in a linked one.
	Root string
	// Project is made of the folder's name.
	Project forge.ProjectID
	// Actor is the person, as git or the system names them; empty if neither
	// does.
	Actor string
	// Store is open until Close.
	Store *store.Store
}

// OpenRepository returns the repository around a directory. Its errors say what to
// do, in words of package git.
func OpenRepository(ctx context.Context, dir string) (*Repository, error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s: no such folder", dir)
	}
	store, err := store.OpenLocal(ctx, store.LocalConfig{Path: dir})
	if err != nil {
		return nil, explain(err)
	}
	r := &Repository{Root: store.WorkTree(), Store: store, Actor: store.UserName(ctx)}
	r.Project = forge.ProjectID(slug.Named("project", filepath.Base(r.Root)))
	if r.Actor == "" {
		if u, err := user.Current(); err == nil {
			r.Actor = u.Username
		}
	}
	return r, nil
}

// Close ends the git processes that wait for the next question. Whatever is asked
// afterwards starts them again.
func (r *Repository) Close() { r.Store.Close() }

// explain returns the plain sentence for an error, without git's own output,
// where there is one.
func explain(err error) error {
	for _, known := range []error{git.ErrNotRepository, git.ErrBare} {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// Base is the commit that a run works on, with its configuration.
type Base struct {
	// Branch is the base branch, and Head its tip.
	Branch git.Branch
	Head   git.OID
	// Config is that of the commit: changes to pfl-forge.yaml count when they
	// are committed.
	Config *config.Project
	// Stored is pfl-forge.yaml as committed; nil if there is none.
	Stored []byte
}

// Base returns the base branch with its configuration, and checks that the
// repository can be worked on. The base branch is the one that the committed
// pfl-forge.yaml names, or else the one that is checked out. Errors say what a
// person can do.
func (r *Repository) Base(ctx context.Context) (*Base, error) {
	current, err := r.Store.CurrentBranch()
	if err != nil {
		// An unfinished rebase detaches HEAD too; Inspect tells them apart.
		_, inspectErr := r.Store.Inspect(ctx, "HEAD-is-nowhere")
		return nil, inspectErr
	}
	b, err := r.base(ctx, current)
	if err != nil {
		return nil, err
	}
	if b.Config.BaseBranch == "" || b.Config.BaseBranch == string(current) {
		return b, nil
	}
	named, err := git.ParseBranch(b.Config.BaseBranch)
	if err != nil {
		return nil, fmt.Errorf("%s: base_branch: %w", config.FileName, err)
	}
	return r.base(ctx, named)
}

// base returns a branch and its configuration.
func (r *Repository) base(ctx context.Context, branch git.Branch) (*Base, error) {
	head, err := r.Store.Inspect(ctx, branch)
	if err != nil {
		return nil, fmt.Errorf("branch %s: %w", branch, err)
	}
	b := &Base{Branch: branch, Head: head, Config: config.Default()}
	b.Stored, err = r.Store.ReadFile(ctx, head, config.FileName, maxConfig)
	if errors.Is(err, git.ErrNotFound) {
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	b.Config, err = config.Parse(b.Stored)
	if err != nil {
		return nil, fmt.Errorf("%w (as committed on %s: fix it and commit)", err, branch)
	}
	return b, nil
}

// ReadDrafts returns the drafts that a run would submit, and the problems of the
// others. known are the intents that exist. No other process may be working in the
// repository.
func (r *Repository) ReadDrafts(ctx context.Context, known map[forge.IntentID][]forge.IntentID) ([]forgedir.Input, []forgedir.Problem, error) {
	if _, err := os.Lstat(filepath.Join(r.Root, layout.Dir)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	files, err := forgedir.Open(r.Root, forgedir.Options{Project: r.Project, Actor: r.Actor})
	if err != nil {
		return nil, nil, err
	}
	inputs, problems, err := files.Drafts(ctx)
	if err := errors.Join(err, files.Close()); err != nil {
		return nil, nil, err
	}
	inputs, foreign, err := r.ofPerson(ctx, inputs)
	if err != nil {
		return nil, nil, err
	}
	inputs, more := drafts.CheckDependencies(inputs, known)
	return inputs, slices.Concat(problems, foreign, more), nil
}
