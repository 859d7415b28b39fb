package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// move describes one merge. It is on the disk as pfl-forge/move.json while the
// merge goes on, so that repair knows after a crash what was under way.
type move struct {
	Branch git.Branch `json:"branch"`
	Old    git.OID    `json:"old"`
	New    git.OID    `json:"new"`
	// WorkTree is the working tree that has the branch checked out; empty if
	// none has.
	WorkTree string `json:"work_tree,omitempty"`
	// GitDir is the git directory of that working tree, which has its index and
	// HEAD; the repository's if there is none.
	GitDir string `json:"git_dir"`
	// Files says that from here on files of the working tree may be the new
	// ones. Before that a crash has nothing to undo.
	Files bool `json:"files,omitempty"`
}

// Names of lock files and indexes, in the git directory of a working tree.
const (
	lockMark  = "pfl-forge holds this lock while it moves the branch\n"
	ownIndex  = "index.pfl-forge"
	indexLock = "index.lock"

	// moveTimeout bounds the time in which files follow, with whatever filters
	// the person has.
	moveTimeout = 10 * time.Minute
)

// moveFile returns the path of move.json.
func (repo *Repository) moveFile() string { return repo.Own("move.json") }

// moveWorkTree moves a branch that is checked out, with the files. Everything that
// another git could change is locked before anything is looked at: the index by
// index.lock, which carries our mark, the branch and HEAD by the ref transaction. Files
// are written with an index of our own; then it takes the index's place; then the ref
// moves. A crash in between leaves move.json, and repair puts the files back.
func (repo *Repository) moveWorkTree(ctx context.Context, m move, hold []*os.File) error {
	unlock, err := lockIndex(m.GitDir)
	if err != nil {
		return err
	}
	defer unlock()
	return repo.moveRef(ctx, m, hold, func() error {
		w := workTreeInfo{path: m.WorkTree, gitDir: m.GitDir, head: readHEAD(m.GitDir)}
		if !w.on(m.Branch) {
			return fmt.Errorf("%s has switched branches: %w", m.WorkTree, git.ErrBusy)
		}
		return repo.moveFiles(ctx, m, hold)
	})
}

// announce writes the move to the disk before anything is locked or changed, so that
// repair can undo it after a crash.
func (repo *Repository) announce(m move) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if m.Files {
		return disk.WriteDurable(repo.moveFile(), b)
	}
	// The file is durable before the locks that it lists are: both are on one file system.
	next := repo.moveFile() + ".next"
	if err := errors.Join(disk.WriteFile(next, b), disk.Flush(next, true)); err != nil {
		return err
	}
	return os.Rename(next, repo.moveFile())
}

// moveFiles brings files and index to the new commit, under a prepared
// transaction. Once begun it does not end with ctx: a half-moved tree would
// have to be put back.
func (repo *Repository) moveFiles(ctx context.Context, m move, hold []*os.File) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), moveTimeout)
	defer cancel()
	if err := takeIndex(m.GitDir); err != nil {
		return err
	}
	own := filepath.Join(m.GitDir, ownIndex)
	defer func() { _ = os.Remove(own) }()
	k := m.person(hold)
	changed, err := repo.overlap(ctx, m, k)
	if err != nil {
		return err
	}
	m.Files = true
	if err := repo.announce(m); err != nil {
		return err
	}
	if _, err := git.Run(ctx, k, "read-tree", "-m", "-u", string(m.Old), string(m.New)); err != nil {
		return err
	}
	if err := m.flushFiles(changed, own); err != nil {
		return err
	}
	return os.Rename(own, filepath.Join(m.GitDir, "index"))
}

// flushFiles makes the files and their index durable before the branch moves: a file
// that is empty after a power cut would count as the person's work.
func (m move) flushFiles(changed []string, index string) error {
	for _, c := range changed {
		path := filepath.Join(m.WorkTree, c)
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			continue // removed, or a symbolic link
		}
		if err := disk.Flush(path, false); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	return disk.Flush(index, true) // and with it what the file system knows about the others
}

// person returns a command on the person's working tree that uses our copy of their
// index. Their own configuration applies, because it says how files are written: line
// endings, filters.
func (m move) person(hold []*os.File) git.Command {
	return git.Command{
		Dir: m.WorkTree, GitDir: m.GitDir, Personal: true, Hold: hold, Config: []string{"core.splitIndex=false"},
		Env: []string{"GIT_WORK_TREE=" + m.WorkTree, "GIT_INDEX_FILE=" + filepath.Join(m.GitDir, ownIndex)},
	}
}

// lockIndex takes index.lock as git does. The lock comes into being with our mark in
// it: so one that a crash left is known for ours.
func lockIndex(gitDir string) (unlock func(), err error) {
	path := filepath.Join(gitDir, indexLock)
	marked := path + ".pfl-forge"
	if err := disk.WriteDurable(marked, []byte(lockMark)); err != nil { // after a power cut it has to be known as ours
		return nil, err
	}
	defer func() { _ = os.Remove(marked) }()
	err = os.Link(marked, path)
	if errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s: %w", path, git.ErrBusy)
	}
	return func() { _ = os.Remove(path) }, err
}

// takeIndex copies the person's index to index.pfl-forge, which the commands of
// person use. A missing index is an empty one.
func takeIndex(gitDir string) error {
	own := filepath.Join(gitDir, ownIndex)
	_ = os.Remove(own + ".lock")
	err := disk.CopyIndex(filepath.Join(gitDir, "index"), own)
	if errors.Is(err, os.ErrNotExist) {
		return disk.IgnoreMissing(os.Remove(own))
	}
	return err
}
