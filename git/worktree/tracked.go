package worktree

import (
	"context"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// Tracked returns which of the files below a folder of the main working tree git tracks, in the
// index or in HEAD's commit: their paths from the root. Where the folder itself, or one above
// it, is tracked as a link or a submodule, that is the path. Upper and lower case count as
// the same, as some file systems have it.
func (repo *Repository) Tracked(ctx context.Context, folder string) ([]string, error) {
	if repo.workTree == "" {
		return nil, nil
	}
	index, err := git.Run(ctx, git.Command{Dir: repo.workTree, GitDir: repo.common, Env: []string{"GIT_WORK_TREE=" + repo.workTree}},
		"ls-files", "-z", "--cached", "--", ":(top,icase,literal)"+folder)
	if err != nil {
		return nil, err
	}
	// ls-tree knows no magic: the names at the root are few, and those that are meant are listed.
	root, err := repo.Git(ctx, "ls-tree", "-z", "--name-only", "HEAD")
	if err != nil {
		return paths(index), nil //nolint:nilerr // no commit yet
	}
	all := paths(index)
	for _, name := range paths(root) {
		if strings.EqualFold(name, folder) {
			tree, err := repo.Git(ctx, "ls-tree", "-z", "-r", "--name-only", "HEAD", "--", name)
			if err != nil {
				return nil, err
			}
			all = append(all, paths(tree)...)
		}
	}
	return all, nil
}

// paths splits the output of git with -z.
func paths(out []byte) []string {
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}
