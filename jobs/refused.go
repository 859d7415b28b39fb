package jobs

import (
	"context"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// maxRefusal bounds the words of an origin that are told, in characters: a hook
// prints what it likes.
const maxRefusal = 300

// Refused makes a result of a push that the origin refused, with the change as
// it was verified on the moved tip; nil if it had not moved. The next try takes
// that where the trees are the same. Any other error stays one.
func Refused(ctx context.Context, j *Job, moved *forge.Rebase, err error) (*forge.MergeResult, error) {
	words, is := git.Refusal(err)
	if !is {
		return nil, err
	}
	branch, err := j.Base(ctx)
	if err != nil {
		return nil, err
	}
	if moved != nil {
		tree, err := j.Store.Tree(ctx, j.Tip)
		if err != nil {
			return nil, err
		}
		moved.BaseTree = string(tree)
	}
	return &forge.MergeResult{Outcome: forge.MergeRefused, Candidate: moved, Refusal: said(string(branch) + ": " + words)}, nil
}

// said returns the words of an origin on a line.
func said(words string) string {
	return term.Short(userInfo.ReplaceAllString(strings.ReplaceAll(words, "\n", "; "), "://"), maxRefusal)
}
