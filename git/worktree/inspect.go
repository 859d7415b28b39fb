package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/internal/disk"
)

// workTreeInfo describes a working tree of the person's repository, the main
// one or a linked one, at the time when it was looked at.
type workTreeInfo struct {
	// path is the folder of its files.
	path string
	// gitDir has its HEAD and index: the repository's for the main one,
	// .git/worktrees/<name> for others.
	gitDir string
	// head is the content of HEAD: "ref: refs/heads/main", or an object name.
	head string
}

// Inspect checks that the repository can be worked on with base as its base
// branch, and returns the base's head. It changes nothing. Errors: ErrNoCommit,
// ErrInProgress, ErrDetached, ErrNoBranch; their texts say what a person can
// do.
func (repo *Repository) Inspect(ctx context.Context, base git.Branch) (git.OID, error) {
	if repo.workTree != "" {
		w := workTreeInfo{path: repo.workTree, gitDir: repo.common, head: readHEAD(repo.common)}
		if op := w.operation(); op != "" {
			return "", fmt.Errorf("%s: %s: %w", repo.workTree, op, git.ErrInProgress)
		}
		if !strings.HasPrefix(w.head, "ref: ") {
			return "", fmt.Errorf("%s: %w", repo.workTree, git.ErrDetached)
		}
	}
	head, err := repo.Head(ctx, base)
	if err == nil {
		return head, nil
	}
	if out, e := repo.Git(ctx, "rev-list", "-n1", "--all"); e == nil && len(out) == 0 {
		return "", fmt.Errorf("%s: %w", repo.common, git.ErrNoCommit)
	}
	return "", err
}

// CurrentBranch returns the branch that the person's main working tree, or a bare
// repository's HEAD, is on. It need not exist yet. Error: ErrDetached.
func (repo *Repository) CurrentBranch() (git.Branch, error) {
	name, ok := strings.CutPrefix(readHEAD(repo.common), "ref: refs/heads/")
	if !ok {
		return "", fmt.Errorf("%s: %w", repo.common, git.ErrDetached)
	}
	return git.ParseBranch(name)
}

// mainWorkTree finds the files of a repository around path. `git worktree list` names
// the git directory instead when that is not the working tree's .git: in a submodule,
// and after git init --separate-git-dir.
func mainWorkTree(ctx context.Context, path, common string) (string, error) {
	out, err := git.Run(ctx, git.Command{Dir: common, GitDir: common}, "config", "--null", "--get-regexp", `^core\.(bare|worktree)$`)
	if err != nil && git.ExitCode(err) != 1 {
		return "", err
	}
	var moved string
	for entry := range strings.SplitSeq(string(out), "\x00") {
		switch key, value, _ := strings.Cut(entry, "\n"); {
		case key == "core.bare" && value == "true":
			return "", nil
		case key == "core.worktree":
			moved = value
		}
	}
	switch {
	case filepath.IsAbs(moved):
		return filepath.Clean(moved), nil
	case moved != "":
		return filepath.Join(common, moved), nil
	case filepath.Base(common) == ".git":
		return filepath.Dir(common), nil
	}
	out, err = git.Run(ctx, git.Command{Dir: path}, "rev-parse", "--show-toplevel")
	top := strings.TrimSuffix(string(out), "\n")
	link, readErr := os.ReadFile(filepath.Join(top, ".git"))
	if target := strings.TrimSpace(strings.TrimPrefix(string(link), "gitdir: ")); err != nil || readErr != nil || target != common {
		return "", fmt.Errorf("%s: where its main working tree is cannot be told from here: go there", common)
	}
	return top, nil
}

// workTrees returns the person's working trees that exist on the disk, the main
// one first.
func (repo *Repository) workTrees() []workTreeInfo {
	var all []workTreeInfo
	if repo.workTree != "" {
		all = append(all, workTreeInfo{path: repo.workTree, gitDir: repo.common, head: readHEAD(repo.common)})
	}
	linked, _ := os.ReadDir(filepath.Join(repo.common, "worktrees"))
	for _, e := range linked {
		dir := filepath.Join(repo.common, "worktrees", e.Name())
		b, err := os.ReadFile(filepath.Join(dir, "gitdir"))
		if err != nil {
			continue
		}
		path := filepath.Dir(strings.TrimSpace(string(b)))
		if disk.IsDir(path) {
			all = append(all, workTreeInfo{path: path, gitDir: dir, head: readHEAD(dir)})
		}
	}
	return all
}

// on reports whether the branch is checked out, whatever commit it is at.
func (w workTreeInfo) on(b git.Branch) bool { return w.head == "ref: "+b.Ref() }

// operation returns the name of the unfinished git operation in the working tree, such
// as "merge", or "".
func (w workTreeInfo) operation() string {
	for _, op := range []struct{ file, name string }{
		{"rebase-merge", "rebase"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
		{"sequencer", "cherry-pick or revert"},
		{"BISECT_LOG", "bisect"},
	} {
		if disk.Exists(filepath.Join(w.gitDir, op.file)) {
			return op.name
		}
	}
	return ""
}

// rebasing reports whether an unfinished rebase or bisection of this working
// tree will come back to the branch. While it goes on HEAD is detached, so on
// does not see it.
func (w workTreeInfo) rebasing(b git.Branch) bool {
	for _, file := range []string{"rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"} {
		content, err := os.ReadFile(filepath.Join(w.gitDir, file))
		name := strings.TrimSpace(string(content))
		if err == nil && (name == b.Ref() || name == string(b)) {
			return true
		}
	}
	return false
}

// readHEAD returns the content of HEAD; empty if it cannot be read.
func readHEAD(gitDir string) string {
	b, _ := os.ReadFile(filepath.Join(gitDir, "HEAD"))
	return strings.TrimSpace(string(b))
}
