package worktree

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// overlap returns the paths that a move changes, or a *UncommittedError if uncommitted
// work of the person is in the way. It is stricter than git, which overwrites ignored
// files, restores deleted ones, and loses staged changes where a file takes the place
// of a directory.
func (repo *Repository) overlap(ctx context.Context, m move, k git.Command) ([]string, error) {
	list := func(c git.Command, args ...string) (paths []string, err error) {
		return git.SplitNUL(git.Run(ctx, c, append(args, "-z")...))
	}
	changes, err := repo.RawChanges(ctx, m.Old, m.New)
	if err != nil {
		return nil, err
	}
	var changed, added []string
	for _, c := range changes {
		changed = append(changed, c.Path)
		if strings.Trim(c.OldMode, "0") == "" {
			added = append(added, c.Path)
		}
	}
	staged, err := list(k, "diff-index", "--cached", "--name-only", "--no-renames", string(m.Old))
	if err != nil {
		return nil, err
	}
	if len(staged) > 0 { // what is staged and equals the new commit is not in the way
		differs, err := list(k, "diff-index", "--cached", "--name-only", "--no-renames", string(m.New))
		if err != nil {
			return nil, err
		}
		staged = slices.DeleteFunc(staged, func(p string) bool { return !slices.Contains(differs, p) })
	}
	edited, err := repo.edited(ctx, k, changed)
	if err != nil {
		return nil, err
	}
	files := touching(append(staged, edited...), changed)
	if found := m.onDisk(added); len(found) > 0 {
		tracked, err := list(k, "ls-files")
		if err != nil {
			return nil, err
		}
		files = append(files, untracked(found, tracked, staged)...)
	}
	return changed, repo.verdict(ctx, m, k, files)
}

// maxPathspecs bounds the paths in the arguments of a command.
const maxPathspecs = 200

// edited returns the tracked files in the working tree that are not as the
// index has them: those at and below the paths, so that git does not look at
// every file of a large repository, or all if there are many paths.
func (repo *Repository) edited(ctx context.Context, k git.Command, paths []string) ([]string, error) {
	args := []string{"ls-files", "-z", "-m", "-d", "--"}
	if len(paths) <= maxPathspecs {
		args = append(args, paths...)
	}
	return git.SplitNUL(git.Run(ctx, k, args...))
}

// verdict returns an UncommittedError for the files. If there are none, it asks git
// whether the move would succeed.
func (repo *Repository) verdict(ctx context.Context, m move, k git.Command, files []string) error {
	if len(files) == 0 {
		err := m.tried(ctx, k)
		if err != nil { // perhaps a file was only touched: git reads all that look changed, which few moves need
			if _, err := git.Run(ctx, k, "update-index", "-q", "--refresh"); err != nil && git.ExitCode(err) != 1 {
				return err
			}
			err = m.tried(ctx, k)
		}
		quoted := quotedPath.FindStringSubmatch(git.Stderr(err))
		if err == nil || quoted == nil {
			return err
		}
		files = quoted[1:]
	}
	slices.Sort(files)
	return &git.UncommittedError{Files: slices.Compact(files)}
}

// tried returns git's error if it would not move the files.
func (m move) tried(ctx context.Context, k git.Command) error {
	_, err := git.Run(ctx, k, "read-tree", "-m", "-u", "-n", string(m.Old), string(m.New))
	return err
}

// quotedPath matches the path in a complaint of git read-tree.
var quotedPath = pattern.New(`'([^'\n]+)'`)

// touching returns the paths of mine that are equal to, above or below one of theirs.
func touching(mine, theirs []string) []string {
	at := make(map[string]bool) // theirs and every directory of theirs
	exact := make(map[string]bool)
	for _, p := range theirs {
		exact[p] = true
		for ; p != "." && !at[p]; p = path.Dir(p) {
			at[p] = true
		}
	}
	var found []string
	for _, p := range mine {
		below := false
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			below = below || exact[d]
		}
		if at[p] || below {
			found = append(found, p)
		}
	}
	return found
}

// untracked returns the files that the index does not have, or has only because the
// person staged something.
func untracked(files, tracked, staged []string) []string {
	known := make(map[string]bool, len(tracked))
	for _, p := range tracked {
		known[p] = true
	}
	for _, p := range staged {
		delete(known, p)
	}
	return slices.DeleteFunc(files, func(p string) bool { return known[p] })
}

// onDisk returns the files at each path, at one of its directories, or below
// it, relative to the working tree.
func (m move) onDisk(paths []string) []string {
	var found []string
	for _, p := range paths {
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if info, err := os.Lstat(filepath.Join(m.WorkTree, d)); err == nil && !info.IsDir() {
				found = append(found, d)
			}
		}
		_ = filepath.WalkDir(filepath.Join(m.WorkTree, p), func(full string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if rel, err := filepath.Rel(m.WorkTree, full); err == nil {
					found = append(found, rel)
				}
			}
			return nil
		})
	}
	return found
}
