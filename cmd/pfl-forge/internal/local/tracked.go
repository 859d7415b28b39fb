package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge/forgedir"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// ownFolders are the folders in .forge that hold our own state.
var ownFolders = []string{"nats", stateDir, "cache"}

// checkOwn refuses a repository in which git tracks our own state: a store that came with a
// repository would decide, and approve, in the name of whoever made it.
func (r *Repository) checkOwn(ctx context.Context) error {
	tracked, err := r.Store.Tracked(ctx, layout.Dir)
	if err != nil {
		return fmt.Errorf("which files of %s git tracks: %w", layout.Dir, err)
	}
	for _, path := range tracked {
		if !strings.Contains(path, "/") {
			return fmt.Errorf("git tracks %s, so it may be of whoever wrote this repository, and is not used: git rm --cached %s, and commit that", path, path)
		}
		for _, folder := range ownFolders {
			if within(path, layout.Dir+"/"+folder) {
				return fmt.Errorf("git tracks %s: what comes with a repository decides nothing here. "+
					"Take it out, and commit that: git rm -r --cached %s/%s", layout.Dir+"/"+folder, layout.Dir, folder)
			}
		}
	}
	return nil
}

// within reports whether a path is a folder or something in it, whatever the case.
func within(path, folder string) bool {
	return strings.EqualFold(path, folder) ||
		len(path) > len(folder) && strings.EqualFold(path[:len(folder)], folder) && path[len(folder)] == '/'
}

// ofPerson returns the inputs from files that git does not track, and the problems of the
// others: what git tracks was written by whoever made the commit.
func (r *Repository) ofPerson(ctx context.Context, inputs []forgedir.Input) (good []forgedir.Input, bad []forgedir.Problem, err error) {
	if len(inputs) == 0 {
		return inputs, nil, nil
	}
	tracked, err := r.Store.Tracked(ctx, layout.Dir)
	if err != nil {
		return nil, nil, fmt.Errorf("which files of %s git tracks: %w", layout.Dir, err)
	}
	for _, in := range inputs {
		is := false
		for _, path := range tracked {
			is = is || within(in.Path, path)
		}
		if !is {
			good = append(good, in)
			continue
		}
		bad = append(bad, forgedir.Problem{
			Path: in.Path, Reason: "git tracks this file: it came with the repository, so it is not taken as your request",
			Hint: "if it is yours: git rm --cached " + in.Path,
		})
	}
	return good, bad, nil
}
