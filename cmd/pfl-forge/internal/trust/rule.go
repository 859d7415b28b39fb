package trust

import (
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/worktree"
)

// maxMoves bounds how many moves of HEAD are looked at, the newest ones.
const maxMoves = 500

// history reads commits for the rule.
type history struct {
	// digest returns the digest of what a commit's configuration runs and weakens; empty if
	// that is nothing.
	digest func(git.OID) (string, error)
	// parents returns the parents of a commit.
	parents func(git.OID) ([]git.OID, error)
}

// isCommit reports whether a move of HEAD is a commit that the person made. A merge that was
// committed, a cherry-pick, a pull or a reset brings what others wrote.
func isCommit(reason string) bool {
	kind, _, _ := strings.Cut(reason, ":")
	return slices.Contains([]string{"commit", "commit (initial)", "commit (amend)"}, kind)
}

// own returns the digests that are trusted after the moves of HEAD since trust was given:
// those that were, and each that a commit of the person's made out of a trusted one. A commit
// on top of something that is not trusted does not make that the person's own.
func own(trusted []string, moves []worktree.Move, h history) ([]string, error) {
	all := append([]string{""}, trusted...)
	is := func(o git.OID) (bool, error) {
		d, err := h.digest(o)
		return slices.Contains(all, d), err
	}
	// Oldest first: a commit can make trusted what the next one is made out of.
	for _, m := range moves[max(0, len(moves)-maxMoves):] {
		if !isCommit(m.Reason) {
			continue
		}
		// The replaced commit has to be trusted as well as the parents: git commit --amend keeps
		// the content of the commit that it replaces, which another author may have written.
		before, err := h.parents(m.New)
		if err != nil {
			return nil, err
		}
		if m.Old != "" {
			before = append(before, m.Old)
		}
		ok := true
		for _, o := range before {
			if ok, err = is(o); !ok || err != nil {
				break
			}
		}
		if err != nil {
			return nil, err
		}
		if !ok { // whoever wrote what is below, this commit may carry it along
			continue
		}
		d, err := h.digest(m.New)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all[1:], nil
}
