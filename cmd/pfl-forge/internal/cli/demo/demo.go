// Package demo makes a small repository in which everything happens that
// pfl-forge is for, and looks afterwards whether it did.
//
//	Create    unpacks repository/ and drafts/ into a folder, and commits
//	Command   has run work on it, as in any repository
//	Examine   reads the traces, and judges each Scene by them
//
// The demo runs recipes, so that it needs no agent and takes seconds. A scene
// names what it shows, what happened, and each difference from the plan: the
// tests of the whole program rely on that, too.
package demo

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/git"
)

//go:embed repository
var repository embed.FS

//go:embed drafts
var drafts embed.FS

// branch is the base branch of the demo's repository.
const branch = git.Branch("main")

// ErrNotEmpty says that there is something in the folder for the demo already.
var ErrNotEmpty = errors.New("the folder is not empty: name another one, or one that does not exist")

// Create makes the repository in a folder that is empty or does not exist: one
// commit, and drafts that no run has seen. It returns the folder's absolute path.
func Create(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s: %w", dir, ErrNotEmpty)
	}
	if err := unpack(repository, dir); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(layout.Dir+"/\n"), 0o644); err != nil {
		return "", err
	}
	by := git.Identity{Name: "pfl-forge demo", Email: "demo@localhost"}
	if _, err := git.Create(ctx, dir, branch, "A program that greets", by); err != nil {
		return "", err
	}
	return dir, unpack(drafts, filepath.Join(dir, layout.Dir, layout.Drafts))
}

// unpack copies the only folder of a file system.
func unpack(from embed.FS, to string) error {
	roots, err := from.ReadDir(".")
	if err != nil {
		return err
	}
	tree, err := fs.Sub(from, roots[0].Name())
	if err != nil {
		return err
	}
	return os.CopyFS(to, tree)
}

// Intents returns the ids of the drafts, sorted.
func Intents() []string {
	entries, _ := drafts.ReadDir("drafts") // it is embedded
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = e.Name()[:len(e.Name())-len(".md")]
	}
	return ids
}
